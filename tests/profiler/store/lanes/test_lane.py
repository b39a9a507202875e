"""Lanes by themselves: records in order, bounded in size, an end that harms nobody; their tails."""

import struct

import numpy as np
import pytest

from builders import loop, values_of
from loaderscope.profiler.base.schema import BATCH, WORKER
from loaderscope.profiler.store.lanes.lane import FIRST_SEGMENT_BYTES, Budget, Lane
from loaderscope.profiler.store.lanes.lane_reader import read_segment
from loaderscope.profiler.store.lanes.lane_tail import LaneTail
from loaderscope.profiler.store.lanes.segment_file import COMMITTED_OFFSET, HEADER_BYTES, segments


def lane_in(folder, limit=1 << 26, tell=print, trimmed=True):
    return Lane(folder, "batches0x0", BATCH, Budget(limit), tell, trimmed)


def write(lane, count, wait_ms=1.0):
    for row in loop(count, wait_ms):
        lane.append(*values_of(BATCH, row))


def records(folder):
    return np.concatenate([read_segment(path)[0] for path in segments(folder, "batches0x0")])


def test_records_are_numbered_and_beyond_the_limit_the_oldest_are_removed(tmp_path):
    Lane(tmp_path, "batches0x0-2", WORKER, Budget(1 << 20), print).append(1, 0, 0, 0, 1)
    lane = lane_in(tmp_path, limit=2_000_000)
    write(lane, 3000)
    # The last is not full.
    sizes = [path.stat().st_size for path in segments(tmp_path, "batches0x0")][:-1]
    assert len(sizes) > 1 and sizes[0] <= FIRST_SEGMENT_BYTES and sizes == sorted(sizes)
    assert records(tmp_path)["seq"].tolist() == list(range(1, 3001))
    write(lane, 9_000)
    kept = records(tmp_path)
    assert sum(path.stat().st_size for path in segments(tmp_path, "batches0x0")) <= 2_000_000
    assert 1_000 < len(kept) < 12_000
    assert kept["seq"].tolist() == list(range(12_001 - len(kept), 12_001))


def test_where_nothing_may_be_removed_the_limit_stops_it_and_says_so_once(tmp_path):
    said = []
    lane = lane_in(tmp_path, 100_000, said.append, trimmed=False)
    write(lane, 5000)
    assert len(said) == 1 and "limit" in said[0] and "training goes on" in said[0]
    assert 0 < len(records(tmp_path)) < 5000
    assert records(tmp_path)["seq"].tolist() == list(range(1, len(records(tmp_path)) + 1))


@pytest.mark.parametrize(
    "ends", [Lane.close, lambda lane: lane.abandon("forked"), lambda lane: lane.stop("why")]
)
def test_after_its_end_it_swallows_what_comes(tmp_path, ends):
    said = []
    lane = lane_in(tmp_path, tell=said.append)
    write(lane, 5)
    ends(lane)
    write(lane, 500)
    assert len(records(tmp_path)) == 5
    assert lane.stopped and len(said) == ("why" in lane.stopped)


def test_a_field_is_written_later_wherever_the_record_is_by_then(tmp_path):
    lane = lane_in(tmp_path)
    place = lane.append(*values_of(BATCH, loop(1)[0])) + BATCH.offset("compute_ns")
    window = lane.window
    window.patch([(place, struct.pack("@q", 7))])
    assert records(tmp_path)["compute_ns"][0] == 7
    write(lane, 1000)
    window.patch([(place, struct.pack("@q", 9))])
    assert records(tmp_path)["compute_ns"][0] == 9


def workers_in(folder, schema=WORKER):
    return Lane(folder, "workers", schema, Budget(1 << 24), print)


def pids(rows):
    return [row[-1] for row in rows]


def test_its_tail_follows_from_segment_to_segment(tmp_path):
    tail, found = LaneTail(tmp_path, "workers", WORKER), []
    assert tail.new() == []
    path = tmp_path / "workers-000000.seg"
    path.write_bytes(bytes(HEADER_BYTES))  # only just made
    assert tail.new() == []
    path.unlink()
    writer = workers_in(tmp_path)
    writer.append(5, 0, 1, 2, 0)
    assert tail.new() == [(1, 5, 0, 1, 2, 0)]
    for pid in range(1, 9000):
        writer.append(0, 0, 0, 0, pid)
        if pid % 700 == 0:
            found += pids(tail.new())
    found += pids(tail.new())
    assert len(list(tmp_path.glob("*.seg"))) > 2
    assert found == list(range(1, 9000)) and tail.new() == []


def test_segments_that_made_room_are_passed_over(tmp_path):
    writer, tail = workers_in(tmp_path), LaneTail(tmp_path, "workers", WORKER)
    writer.append(0, 0, 0, 0, 0)
    assert pids(tail.new()) == [0]
    for pid in range(1, 6000):
        writer.append(0, 0, 0, 0, pid)
    first = min(tmp_path.glob("*.seg"))
    first.unlink()
    found = pids(tail.new())
    assert found and found[-1] == 5999
    assert found == list(range(found[0], 6000))


def test_a_record_that_is_not_the_next_ends_it(tmp_path):
    writer, tail = workers_in(tmp_path), LaneTail(tmp_path, "workers", WORKER)
    writer.append(0, 0, 0, 0, 1)
    path = next(tmp_path.glob("*.seg"))
    with path.open("r+b") as file:
        # A count that promises a record never written, as after a power failure.
        file.seek(COMMITTED_OFFSET)
        file.write(struct.pack("<Q", 2))
        file.truncate(HEADER_BYTES + 2 * WORKER.size)
    assert pids(tail.new()) == [1]
    assert tail.given_up is not None and tail.new() == []


def test_foreign_files_and_other_schemas_give_nothing(tmp_path):
    (tmp_path / "workers-000000.seg").write_bytes(b"not a lane at all" * 1000)
    tail = LaneTail(tmp_path, "workers", WORKER)
    assert tail.new() == [] and tail.new() == []
    (tmp_path / "workers-000000.seg").unlink()
    workers_in(tmp_path, BATCH).roll()
    assert tail.new() == [] and tail.new() == []
