"""The speedscope file against its documented format, and against the stacks that were recorded."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders import loop, opened, write_lane
from inside_samples import NO_CODE
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.schema.report_model import Report
from loaderscope.profiler.base import schema
from loaderscope.profiler.base.errors import UsageError
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.profiler.store.run.take_stacks import with_burst_alone
from loaderscope.profiler.store.stacks.stack_samples import Frame, Stack, StackCapture
from loaderscope.reports.export.speedscope import MAX_PROFILES, SCHEMA_URL, render_speedscope

jsonschema = pytest.importorskip("jsonschema")

# "sampled" profiles as https://www.speedscope.app/file-format-schema.json has them.
NUMBER = {"type": "number"}


def held(required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": required.split(),
        "properties": properties,
        "additionalProperties": False,
    }


def many(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


TEXT = {"type": "string"}
FRAME = held("name", name=TEXT, file=TEXT, line=NUMBER, col=NUMBER)
UNITS = ["none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"]
PROFILE = held(
    "type name unit startValue endValue samples weights",
    type={"const": "sampled"},
    name=TEXT,
    unit={"enum": UNITS},
    startValue=NUMBER,
    endValue=NUMBER,
    samples=many(many({"type": "integer"})),
    weights=many(NUMBER),
)
FORMAT = held(
    "$schema shared profiles",
    **{"$schema": {"const": SCHEMA_URL}},
    name=TEXT,
    exporter=TEXT,
    activeProfileIndex=NUMBER,
    shared={**held("frames", frames=many(FRAME)), "additionalProperties": True},
    profiles=many(PROFILE, minItems=1),
)

FRAMES = (
    Frame("__getitem__", "/home/me/patches.py", 41),
    Frame("load", "/venv/PIL/ImageFile.py", 425),
    Frame("inflate", "libz.so.1", 0, native=True),
    Frame("step", "/home/me/train.py", 9),
)


def burst(number: int = 0, stacks: tuple[Stack, ...] | None = None, **changed: Any) -> StackCapture:
    seen = (
        Stack(4001, "MainThread", "fetch", (0, 1, 2), 30),
        Stack(4001, "MainThread", "fetch", (0,), 10),
        Stack(4001, "MainThread", "idle", (), 50),
        Stack(4000, "MainThread", "compute", (3,), 20),
        Stack(4002, "MainThread", "fetch", (0, 1), 5),
    )
    shown = seen if stacks is None else stacks
    of_each, t_ns = {4000: 20, 4001: 90, 4002: 5}, number * 10**9
    made = StackCapture(number, t_ns, t_ns + 1, 20.0, True, "asked", FRAMES, shown, of_each, {})
    return replace(made, **changed)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    system = {"machine": [{"t_ns": n * 10**9} for n in range(3)]}
    return with_bursts(opened(tmp_path, loop(30, wait_ms=5), system=system), burst())


def with_bursts(run: Run, *bursts: StackCapture) -> Run:
    return replace(run, systems=(replace(run.systems[0], bursts=bursts),))


def without_code(run: Run) -> Report:
    report = build_report(replace(run, systems=()), advice=False)
    return replace(report, loaders=tuple(replace(each, code=None) for each in report.loaders))


def rendered(run: Run) -> tuple[list[Any], list[Any]]:
    """Its profiles and frames."""
    found: dict[str, Any] = json.loads(render_speedscope(without_code(run), run))
    jsonschema.validate(found, FORMAT)
    assert found["name"] == run.id and found["activeProfileIndex"] == 0
    profiles, frames = found["profiles"], found["shared"]["frames"]
    for profile in profiles:
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] == pytest.approx(sum(profile["weights"]))
        assert all(0 <= at < len(frames) for stack in profile["samples"] for at in stack)
    return profiles, frames


def test_a_profile_a_stage_and_process_of_seconds_in_stacks_that_begin_outermost(run: Run) -> None:
    profiles, frames = rendered(run)
    named = ["fetch: process 4001", "fetch: process 4002", "compute: training process 4000"]
    assert [profile["name"] for profile in profiles] == named
    first = profiles[0]
    assert first["unit"] == "seconds" and first["endValue"] == 2.0
    stacks = [tuple(frames[at]["name"] for at in stack) for stack in first["samples"]]
    weights = {("__getitem__", "load", "inflate"): 1.5, ("__getitem__",): 0.5}
    assert dict(zip(stacks, first["weights"], strict=True)) == weights
    assert frames[0] == {"name": "__getitem__", "file": "/home/me/patches.py", "line": 41}
    assert frames[2] == {"name": "inflate", "file": "libz.so.1"}


def test_bursts_add_up_whatever_their_rate(run: Run) -> None:
    profiles, frames = rendered(with_bursts(run, burst(0), burst(1, rate_hz=40.0)))
    assert profiles[0]["endValue"] == 3.0 and len(frames) == len(FRAMES)


def test_workers_are_named(run: Run) -> None:
    worker = {"t_ns": 1, "loader": 0, "worker": 2, "pid": 4001}
    write_lane(run.processes[0].path, "workers", schema.WORKER, [worker])
    profiles, _ = rendered(with_bursts(open_run(run.path), burst()))
    named = ["fetch: worker 2 (process 4001)", "fetch: process 4002"]
    assert [profile["name"] for profile in profiles][:2] == named


def test_damaged_bursts_do_no_harm(run: Run) -> None:
    odd = (
        Stack(4001, "x", "fetch", (99, -1), 5),
        Stack(4001, "x", "fetch", (0, 99), -5),
        Stack(4001, "x", "\x1b[2J" + "s" * 500, (0,), 5),
    )
    rates = (burst(n, rate_hz=rate) for n, rate in enumerate((0.0, float("nan")), 1))
    ((profile,), _) = rendered(with_bursts(run, burst(stacks=odd), *rates))
    assert "\x1b" not in profile["name"]


def test_many_processes_are_bounded(run: Run) -> None:
    many = tuple(Stack(pid, "x", "fetch", (0,), pid) for pid in range(1, 2_000))
    profiles, _ = rendered(with_bursts(run, burst(stacks=many)))
    assert len(profiles) == MAX_PROFILES
    assert profiles[0]["name"].endswith("1999")  # those that were seen most stay


@pytest.mark.parametrize("told_by", ["report", "burst", "system", "process", "nobody"])
def test_without_stacks_the_reason_is_said(run: Run, told_by: str) -> None:
    report, empty = without_code(run), with_bursts(run)
    why = "not permitted: run `sysctl kernel.yama.ptrace_scope=1`"
    reasons = {"reasons": {"stacks": why}}
    if told_by == "report":
        loader = replace(report.loaders[0], code=replace(NO_CODE, reason=why))
        report = replace(report, loaders=(loader,))
    elif told_by == "burst":
        empty = with_bursts(run, burst(stacks=(), reason=why))
    elif told_by == "system":
        empty = replace(empty, systems=(replace(empty.systems[0], **reasons),))
    elif told_by == "process":
        empty = replace(empty, processes=(replace(empty.processes[0], **reasons),))
    else:
        why = "`loaderscope stacks` takes some"
    with pytest.raises(UsageError, match=f"this run holds no stacks.*{re.escape(why)}$"):
        render_speedscope(report, empty)


def test_one_burst_alone(run: Run) -> None:
    asked = burst(7)
    alone = with_burst_alone(with_bursts(run, burst(0), asked), asked)
    assert alone.systems[0].bursts == (asked,)
    assert with_burst_alone(run, asked).systems[0].bursts == (asked,)  # newer than what was read
    assert with_burst_alone(replace(run, systems=()), asked).systems == ()
