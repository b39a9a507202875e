"""What cannot have been measured counts as not measured, with a note, however a run is read."""

import json
import math

import numpy as np
import pytest

from builders import T0, RunBuilder, loop
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.profiler.base import schema
from loaderscope.profiler.base.plausible import believable, limit
from loaderscope.profiler.store.run.follow import Follower, Place
from loaderscope.profiler.store.run.run_reader import open_run


@pytest.mark.parametrize("hook_ns", [math.inf, math.nan, 10**400, -1, 1e10])
def test_what_recording_cost_is_never_absurd(runs_dir, hook_ns):
    run = RunBuilder(runs_dir)
    run.process().loader(loop(50), overhead={"hook_ns": hook_ns})
    recorded = open_run(run.path)
    assert recorded.loaders[0].hook_ns is None
    assert recorded.notes == (
        "Pictures: loader0.json holds impossible numbers (hook_ns): they are left out",
    )
    report = build_report(recorded)
    assert report.overhead.per_batch_us is None
    assert report.overhead.reasons["per_batch_us"] == "no batch was timed for it"
    json.loads(report.to_json(), parse_constant=pytest.fail)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("own_ns", [math.inf, 3e38, -4.0]),
        ("wait_ns", [1 << 62, (1 << 52) + 1, -(1 << 62)]),
        ("t_fetch_ns", [(1 << 61) + 1, 1 << 62, -7]),
        ("bytes", [(1 << 60) + 1, 1 << 62, -2]),
    ],
)
def test_values_of_a_lane_that_cannot_be(runs_dir, column, values):
    run = RunBuilder(runs_dir)
    rows = loop(20, fetch_ns=5, t_fetch_ns=T0, bytes=64, own_ns=700.0)
    for row, value in zip(rows[3:], values, strict=False):
        row[column] = value
    run.process().loader(rows)
    recorded = open_run(run.path)
    loader = recorded.loaders[0]
    assert np.flatnonzero(np.isnan(loader.column(column))).tolist() == [3, 4, 5]
    # A negative one says "not measured", as every lane does: only the two others are damage.
    assert recorded.notes == ("Pictures: 2 impossible values of lane batches0x0 are left out",)
    follower = Follower(run.path)
    follower.poll()
    followed = follower.run(Place("p4000-0", 0)).loaders[0]
    assert np.array_equal(followed.column(column), loader.column(column), equal_nan=True)


def test_a_torn_description_of_the_process_costs_the_dashboard_nothing_else(runs_dir):
    run = RunBuilder(runs_dir)
    process = run.process()
    process.loader(loop(50))
    (process.path / "process.json").write_text('{"format": 1, "pi')
    follower = Follower(run.path)
    follower.poll()
    found = follower.run(Place("p4000-0", 0))
    assert [loader.batches.rows for loader in found.loaders] == [50]


def test_every_column_has_a_limit_that_real_figures_fit():
    schemas = [each for each in vars(schema).values() if isinstance(each, schema.Schema)]
    limits = [limit(field.name) for each in schemas for field in each.fields]
    assert len(schemas) >= 6 and all(most is None or most >= 110 for most in limits)
    for name, value in {
        "t_ns": 10 * 365 * 86_400 * 10**9,  # ten years after the boot
        "wait_ns": 30 * 86_400 * 10**9,  # a month
        "cpu_user_ns": 128 * 365 * 86_400 * 10**9,  # 128 cores, a year
        "mem_total_bytes": 24 << 40,
        "disk_read_bytes": 100 << 50,
        "cpu_idle_pct": 100.0,
        "rank": 100_000,
    }.items():
        assert believable(name, value)
