"""Following a run reads only what is new, keeps little, and agrees with reading the whole."""

from __future__ import annotations

import itertools
import json
import os
import platform
import shutil
from pathlib import Path

import pytest

from builders import T0, RunBuilder, loop, values_of
from loaderscope.profiler.base.batch_record import ON_DEVICE
from loaderscope.profiler.base.liveness import Liveness
from loaderscope.profiler.base.schema import BATCH
from loaderscope.profiler.store.lanes import lane_window
from loaderscope.profiler.store.lanes.lane import Budget, Lane
from loaderscope.profiler.store.lanes.lane_window import LaneWindow
from loaderscope.profiler.store.run import follow
from loaderscope.profiler.store.run.follow import Follower, Place, newest_run
from loaderscope.profiler.store.run.run_reader import open_run


def lane_in(directory: Path, max_bytes: int = 1 << 30) -> Lane:
    return Lane(directory, "batches0x0", BATCH, Budget(max_bytes), pytest.fail, trimmed=True)


def write(lane: Lane, rows: list[dict[str, object]]) -> None:
    for row in rows:
        lane.append(*values_of(BATCH, row))


def window_of(directory: Path, keep: int = 500, totals: bool = True) -> LaneWindow:
    return LaneWindow(directory, "batches0x0", BATCH, keep, totals)


def test_a_window_and_its_totals_make_up_the_lane(tmp_path, monkeypatch):
    lane = lane_in(tmp_path)
    rows = loop(20_000, fetch_ns=lambda n, t, w: (n * 37 % 1000) * 1000)
    window = window_of(tmp_path)
    for at in range(0, 20_000, 1_700):
        write(lane, rows[at : at + 1_700])
        assert window.poll()
    assert not window.poll()
    while window.catch_up():
        window.poll()
    window.poll()
    content = window.content()
    assert content.columns.rows + content.compacted.records == 20_000
    assert 500 <= content.columns.rows < 500 + 2 * 4500
    fetch = content.compacted.columns["fetch_ns"].total + content.columns["fetch_ns"].sum()
    assert fetch == sum((n * 37 % 1000) * 1000 for n in range(20_000))
    # Whatever it has read, the next poll reads what is new, and nothing else.
    for name in ("read_segment", "segments"):
        monkeypatch.setattr(lane_window, name, lambda *_, name=name: pytest.fail(f"{name} again"))
    write(lane, loop(50))
    assert window.poll() and window.newest_seq == 20_050
    # Compute follows from the next batch, across the border of a segment too.
    assert content.compacted.columns["compute_ns"].count == content.compacted.records
    assert content.columns["seq"][-1] == 20_000


def test_segments_that_made_room_meanwhile_are_counted(tmp_path: Path) -> None:
    lane = lane_in(tmp_path, max_bytes=3 << 20)
    window = window_of(tmp_path)
    for _ in range(8):
        write(lane, loop(3_000))
        window.poll()
        window.catch_up()
    while window.catch_up():
        pass
    late = window_of(tmp_path)
    late.poll()
    while late.catch_up():
        pass
    for content in (window.content(), late.content()):
        assert content.columns.rows + content.compacted.records == 24_000
    whole = window.content().compacted.columns["wait_ns"].count
    assert 0 < late.content().compacted.columns["wait_ns"].count < whole


def test_a_window_whose_newest_segment_made_room_goes_on_with_the_next(tmp_path: Path) -> None:
    lane = lane_in(tmp_path, max_bytes=1 << 20)
    window = window_of(tmp_path)
    write(lane, loop(1_000))
    assert window.poll() and window.newest_seq == 1_000
    write(lane, loop(39_000))
    assert window.poll() and window.newest_seq == 40_000
    write(lane, loop(10))
    assert window.poll() and window.newest_seq == 40_010
    while window.catch_up():
        pass
    assert not window.pending


def test_what_is_patched_after_its_commit_is_seen(tmp_path: Path) -> None:
    lane = lane_in(tmp_path)
    write(lane, loop(10, wait_ms=2))
    window = window_of(tmp_path)
    window.poll()
    assert window.content().columns["stall_ns"][8] == -1
    assert lane.window is not None
    lane.window.patch([ON_DEVICE.patch(lane.at(8 - lane.window.position), -1, 77)])
    assert window.poll()
    assert window.content().columns["stall_ns"][8] == 77


def test_a_lane_that_is_none_gives_nothing(tmp_path: Path) -> None:
    (tmp_path / "batches0x0-000000.seg").write_bytes(b"junk" * 5000)
    window = window_of(tmp_path)
    assert not window.poll()
    assert not window.catch_up()
    assert window.content().columns.rows == 0
    shutil.rmtree(tmp_path)
    assert not window.poll()


def test_it_agrees_with_the_whole_run(runs_dir: Path) -> None:
    run = RunBuilder(runs_dir)
    process = run.process()
    process.loader(loop(25_000), loop(500, epoch=1, start_ns=T0 + 10**12))
    process.loader(loop(10))
    follower = Follower(run.path)
    assert follower.poll()
    assert follower.state == "finished"
    place = Place("p4000-0", 0)
    follower.run(place)
    assert follower.catch_up(10) and not follower.catch_up(10)
    found = follower.run(place)
    whole = open_run(run.path)
    assert [each.name for each in found.loaders] == [each.name for each in whole.loaders]
    assert found.loaders[0].count == whole.loaders[0].count == 25_500
    assert found.loaders[1].count == 0  # not chosen: its batches are not read
    assert found.state == whole.state
    assert follower.caught_up() == 1


def test_only_what_changed_is_news_and_a_removed_run_is_given_as_it_was(runs_dir: Path) -> None:
    run = RunBuilder(runs_dir)
    process = run.process()
    process.loader(loop(10))
    clock, place = itertools.count(0, 2 * follow.LOOK_NS), Place("p4000-0", 0)
    now = [next(clock)]
    follower = Follower(run.path, clock=lambda: now[0])

    def news() -> bool:
        now[0] = next(clock)
        return follower.poll()

    assert follower.poll()
    follower.run(place)
    assert not news()
    process.loader(loop(5), name="Second")
    assert news()
    before = follower.run(place)
    assert len(before.loaders) == 2
    shutil.rmtree(run.path)
    assert news() and follower.state == "removed"
    assert follower.run(place) is before


def test_the_newest_live_run_comes_first(runs_dir: Path) -> None:
    assert newest_run(runs_dir) is None
    old = RunBuilder(runs_dir, "20250101-000000-aaaaaa")
    facts = {"host": platform.node(), "boot_id": Liveness().boot_id, "create_time": None}
    process = old.process(ended=False, pid=os.getpid(), **facts)
    new = RunBuilder(runs_dir, "20250102-000000-bbbbbb")
    new.process()
    assert newest_run(runs_dir) == old.path
    ended = json.dumps({**process.facts, "ended_clock_ns": 1})
    (process.path / "process.json").write_text(ended)
    assert newest_run(runs_dir) == new.path
