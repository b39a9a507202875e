"""Run files as types: whole ones, and every way in which one may not fit. What cannot have been
measured counts as not measured, with a note, however a run is read."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Annotated

import numpy as np
import pytest
from msgspec import Meta, Struct

from builders import T0, RunBuilder, loop
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.profiler.base import schema
from loaderscope.profiler.base.atomic_write import write_atomically
from loaderscope.profiler.base.errors import RunUnreadable
from loaderscope.profiler.base.plausible import believable, limit
from loaderscope.profiler.base.tolerant import Count, Share, Text, as_json, fitted, read_as
from loaderscope.profiler.store.run.follow import Follower, Place
from loaderscope.profiler.store.run.run_reader import open_run


class Row(Struct, frozen=True, array_like=True):
    name: Text
    calls: Count
    cost: Annotated[int, Meta(ge=-1)] = -1


class Span(Struct, frozen=True):
    low: float
    high: float

    def __post_init__(self):
        if self.low > self.high:
            raise ValueError("low is above high")


class Facts(Struct, frozen=True):
    name: Text = "unknown"
    short: Annotated[str, Meta(max_length=4)] = ""
    share: Share | None = None
    shape: tuple[Count, ...] | None = None
    words: tuple[str, ...] = ()
    rows: Annotated[tuple[Row, ...], Meta(max_length=3)] = ()
    span: Span | None = None
    count: int | tuple[int, ...] | None = None
    reasons: Mapping[str, str] = {}
    inside: Annotated[tuple[Facts, ...], Meta(max_length=2)] = ()


WHOLE = {"name": "x", "short": "abcd", "share": 0.5, "shape": [2, 3], "words": ["a", "b"]}
WHOLE |= {"rows": [["read", 2, 7]], "span": {"low": 1, "high": 2.0}, "count": [1, 2]}
WHOLE |= {"reasons": {"a": "b"}, "inside": [{"name": "y"}]}


def test_what_is_whole_arrives():
    found = fitted(WHOLE, Facts)
    rows = (Row("read", 2, 7),)
    inside = (Facts("y"),)
    assert found == Facts(
        "x", "abcd", 0.5, (2, 3), ("a", "b"), rows, Span(1.0, 2.0), (1, 2), {"a": "b"}, inside
    )
    assert fitted(json.loads(json.dumps(as_json(found))), Facts) == found


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("name", ["x"], "unknown"),
        ("short", "abcdefgh", "abcd"),
        ("share", 1.5, None),
        ("share", True, None),
        ("share", 1, 1.0),
        ("shape", [2, -1], None),
        ("words", ["a", 1, None, "b"], ()),
        ("rows", [["a", 1], ["b"], "c", ["d", 1, 1]], (Row("a", 1),)),
        ("rows", [["d", -1, 1], ["e", 1, -2], ["f", 1, 1, "more"]], (Row("e", 1), Row("f", 1, 1))),
        ("span", {"low": 3, "high": 2}, None),
        ("span", {"low": 3}, None),
        ("count", "8", None),
        ("reasons", {"a": "b", "c": 1, "d": None}, {}),
        ("inside", [{"name": 1, "share": 0.25}, 3, {}, {}], (Facts(share=0.25),)),
        ("nobody knows it", 1, None),
    ],
)
def test_what_does_not_fit_costs_itself_alone(field, value, expected):
    found, whole = as_json(fitted({**WHOLE, field: value}, Facts)), as_json(fitted(WHOLE, Facts))
    assert getattr(fitted({**WHOLE, field: value}, Facts), field, None) == expected
    assert {**found, field: 0} == {**whole, field: 0}


@pytest.mark.parametrize("value", [None, 3, "x", [[]], {}])
def test_another_value_altogether_is_as_if_nothing_were_known(value):
    assert fitted(value, Facts) == Facts()


def test_a_file_is_cleaned_and_its_impossible_numbers_are_told(tmp_path):
    path = tmp_path / "facts.json"
    path.write_text('{"name": "\\u001b[31mred", "share": NaN, "reasons": {"x": "\\ud800"}}')
    notes = []
    found = read_as(Facts, path, notes)
    assert found.name.isprintable() and "red" in found.name
    assert found.share is None and found.reasons["x"].isprintable()
    assert len(notes) == 1 and "share" in notes[0]
    with pytest.raises(RunUnreadable):
        read_as(Facts, tmp_path / "nowhere.json")


@pytest.mark.parametrize("replaced", [False, True], ids=["before", "once it is replaced"])
def test_what_a_handler_raises_in_writing_is_raised_and_no_part_stays(
    tmp_path, monkeypatch, replaced
):
    replace = os.replace

    def interrupted(one, other):
        if replaced:
            replace(one, other)
        raise TimeoutError

    path = tmp_path / "process.json"
    path.write_text("old")
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(TimeoutError):
        write_atomically(path, "new")
    assert [each.name for each in tmp_path.iterdir()] == ["process.json"]
    assert path.read_text() == ("new" if replaced else "old")


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
