import struct

from loaderscope.profiler.base.schema import BATCH, WORKER
from loaderscope.profiler.store.lanes.lane import Budget, Lane
from loaderscope.profiler.store.lanes.lane_tail import LaneTail
from loaderscope.profiler.store.lanes.segment_file import COMMITTED_OFFSET, HEADER_BYTES


def lane(directory, schema=WORKER, **how):
    return Lane(directory, "workers", schema, Budget(1 << 24), lambda why: None, **how)


def pids(rows):
    return [row[-1] for row in rows]


def test_it_follows_from_segment_to_segment(tmp_path):
    tail, found = LaneTail(tmp_path, "workers", WORKER), []
    assert tail.new() == []
    path = tmp_path / "workers-000000.seg"
    path.write_bytes(bytes(HEADER_BYTES))  # only just made
    assert tail.new() == []
    path.unlink()
    writer = lane(tmp_path)
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
    writer, tail = lane(tmp_path), LaneTail(tmp_path, "workers", WORKER)
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
    writer, tail = lane(tmp_path), LaneTail(tmp_path, "workers", WORKER)
    writer.append(0, 0, 0, 0, 1)
    path = next(tmp_path.glob("*.seg"))
    with path.open(
        "r+b"
    ) as file:  # a count that promises a record never written, as after a power failure
        file.seek(COMMITTED_OFFSET)
        file.write(struct.pack("<Q", 2))
        file.truncate(HEADER_BYTES + 2 * WORKER.size)
    assert pids(tail.new()) == [1]
    assert tail.given_up is not None
    assert tail.new() == []


def test_foreign_files_and_other_schemas_give_nothing(tmp_path):
    (tmp_path / "workers-000000.seg").write_bytes(b"not a lane at all" * 1000)
    tail = LaneTail(tmp_path, "workers", WORKER)
    assert tail.new() == [] and tail.new() == []
    (tmp_path / "workers-000000.seg").unlink()
    lane(tmp_path, BATCH).roll()
    assert tail.new() == [] and tail.new() == []
