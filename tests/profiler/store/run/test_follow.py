"""Following a run reads the newest records of it, and agrees with reading the whole."""

import json
import os
import platform
import shutil

import numpy as np
import pytest

from builders import T0, RunBuilder, loop, values_of
from loaderscope.profiler.base.liveness import Liveness
from loaderscope.profiler.base.schema import BATCH
from loaderscope.profiler.store.lanes.columns import read_lane
from loaderscope.profiler.store.lanes.lane import Budget, Lane
from loaderscope.profiler.store.run.follow import Follower, Place, newest_run
from loaderscope.profiler.store.run.run_reader import open_run


def newest(directory, at_least=500):
    return read_lane(directory, "batches0x0", BATCH, at_least)


def test_the_newest_records_are_those_of_the_whole_lane(tmp_path):
    lane = Lane(tmp_path, "batches0x0", BATCH, Budget(1 << 30), pytest.fail, trimmed=True)
    rows = loop(20_000, fetch_ns=lambda n, t, w: (n * 37 % 1000) * 1000)
    for at in range(0, 20_000, 1_700):
        for row in rows[at : at + 1_700]:
            lane.append(*values_of(BATCH, row))
        content = newest(tmp_path)
        written = lane.first + lane.count - 1
        assert content.columns["seq"][-1] == content.columns.rows + content.older == written
    assert 500 <= content.columns.rows < 500 + 2 * 4500 and not content.notes
    whole = newest(tmp_path, None)
    assert (whole.columns.rows, whole.older) == (20_000, 0)
    for name, values in content.columns.items():
        same = whole.columns[name][-len(values) :]
        assert np.array_equal(values, same, equal_nan=values.dtype.kind == "f")


def test_it_agrees_with_the_whole_run(runs_dir):
    run = RunBuilder(runs_dir)
    process = run.process()
    process.loader(loop(25_000), loop(500, epoch=1, start_ns=T0 + 10**12))
    process.loader(loop(10))
    follower = Follower(run.path)
    assert follower.poll()
    place = Place("p4000-0", 0)
    found = follower.run(place)
    whole = open_run(run.path)
    assert [each.name for each in found.loaders] == [each.name for each in whole.loaders]
    assert found.loaders[0].count == whole.loaders[0].count == 25_500
    assert found.loaders[1].count == 0  # not chosen: its batches are not read
    assert found.state == whole.state == "finished"


def test_only_what_changed_is_news_and_a_removed_run_is_given_as_it_was(runs_dir):
    run = RunBuilder(runs_dir)
    process = run.process()
    process.loader(loop(10))
    follower, place = Follower(run.path), Place("p4000-0", 0)
    assert follower.poll()
    follower.run(place)
    assert not follower.poll()
    process.loader(loop(5), name="Second")
    assert follower.poll()
    before = follower.run(place)
    assert len(before.loaders) == 2
    shutil.rmtree(run.path)
    assert follower.poll() and follower.state == "removed"
    assert follower.run(place) is before


def test_the_newest_live_run_comes_first(runs_dir):
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
