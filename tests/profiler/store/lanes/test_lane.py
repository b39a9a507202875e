"""Lanes by themselves: records in order, bounded in size, and an end that harms nobody."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders import loop, values_of
from loaderscope.profiler.base.schema import BATCH, WORKER
from loaderscope.profiler.store.lanes.lane import FIRST_SEGMENT_BYTES, Budget, Lane
from loaderscope.profiler.store.lanes.lane_reader import read_segment
from loaderscope.profiler.store.lanes.segment_file import segments


def lane_in(
    folder: Path, limit: int = 1 << 26, said: list[str] | None = None, trimmed: bool = True
) -> Lane:
    told = said if said is not None else []
    return Lane(folder, "batches0x0", BATCH, Budget(limit), told.append, trimmed)


def write(lane: Lane, count: int, wait_ms: float = 1.0) -> None:
    for row in loop(count, wait_ms):
        lane.append(*values_of(BATCH, row))


def records(folder: Path) -> Any:
    return np.concatenate([read_segment(path)[0] for path in segments(folder, "batches0x0")])


def test_records_are_numbered_and_beyond_the_limit_the_oldest_are_removed(tmp_path: Path) -> None:
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


def test_where_nothing_may_be_removed_the_limit_stops_it_and_says_so_once(tmp_path: Path) -> None:
    said: list[str] = []
    lane = lane_in(tmp_path, 100_000, said, trimmed=False)
    write(lane, 5000)
    assert len(said) == 1 and "limit" in said[0] and "training goes on" in said[0]
    assert 0 < len(records(tmp_path)) < 5000
    assert records(tmp_path)["seq"].tolist() == list(range(1, len(records(tmp_path)) + 1))


def test_making_room_takes_the_oldest_first_and_no_more_than_needed(tmp_path: Path) -> None:
    budget = Budget(1200, share=lambda: 4)  # processes share it
    for name in ("first", "second", "third"):
        assert budget.admit(100)
        (tmp_path / name).touch()
        budget.seal(str(tmp_path / name), 100)
    assert budget.admit(150)
    assert [path.name for path in tmp_path.iterdir()] == ["third"]
    assert not budget.admit(300)


@pytest.mark.parametrize(
    "ends", [Lane.close, lambda lane: lane.abandon("forked"), lambda lane: lane.stop("why")]
)
def test_after_its_end_it_swallows_what_comes(tmp_path: Path, ends: Any) -> None:
    said: list[str] = []
    lane = lane_in(tmp_path, said=said)
    write(lane, 5)
    ends(lane)
    write(lane, 500)
    assert len(records(tmp_path)) == 5
    assert lane.stopped and len(said) == ("why" in lane.stopped)


def test_a_field_is_written_later_wherever_the_record_is_by_then(tmp_path: Path) -> None:
    lane = lane_in(tmp_path)
    place = lane.append(*values_of(BATCH, loop(1)[0])) + BATCH.offset("compute_ns")
    window = lane.window
    assert window is not None
    window.patch([(place, struct.pack("@q", 7))])
    assert records(tmp_path)["compute_ns"][0] == 7
    write(lane, 1000)
    window.patch([(place, struct.pack("@q", 9))])
    assert records(tmp_path)["compute_ns"][0] == 9
