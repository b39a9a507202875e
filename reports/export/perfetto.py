"""The newest batches as a trace in Chrome's JSON format: opens in ui.perfetto.dev and in chrome://tracing.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU ("Trace
Event Format").
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...advisors.schema.report_model import Report
from ...profiler.base.metadata import clean
from ...profiler.store.run.run import LoaderRun, ProcessRun, Run, SystemRun
from ..words.curves import curves
from ..words.glosses import label_of
from ..words.loaders import use_of
from ..words.timeline import Window

# 2,000 batches of one loader are some 25,000 events, 4 MB; a viewer takes more, a browser tab not
# much more.
BATCHES = 2_000
MAX_LOADERS = 64
MAX_SAMPLES = 5_000
AROUND_NS = 2 * 10**9  # system samples from this long before to this long after the batches
# Loaders are numbered from 1, hosts from here.
_FIRST_HOST = 1_000
# Chart of the system's curves → how its counters are named, and their unit.
_COUNTERS = {
    "cpu": ("CPU {} (100 = all cores)", "percent"),
    "memory": ("memory {}", "bytes"),
    "gpu": ("{} some kernel running", "percent"),
    "gpu-memory": ("{} memory", "bytes"),
}

Event = dict[str, Any]


def render_perfetto(report: Report, run: Run, batches: int = BATCHES) -> str:
    """The trace as JSON text: the newest `batches` of each loader, and the system's samples around
    them.

    Each loader is a "process" of the trace, with a thread each for the training loop, the workers,
    their queues, the pin thread and the device. Of the last two only lengths are known: their
    places are the likely ones, and the slices say so. Times are microseconds from the first event
    on the clock of the host; hosts are aligned by the calendar.
    """
    shifts = _shifts(run)
    events: list[Event] = []
    times: list[int] = []
    pairs = [(process, loader) for process in run.processes for loader in process.loaders]
    for number, (process, columns) in enumerate(pairs[:MAX_LOADERS], 1):
        window = Window(columns, batches)
        if len(window.rows):
            shift = shifts.get(process.boot_id, 0)
            events += _loader(number, columns, process, window, shift)
            times += [int(window.start.min()) + shift, window.end + shift]
    for number, system in enumerate(run.systems, _FIRST_HOST):
        if system.boot_id in shifts and times:
            events += _system(number, system, shifts[system.boot_id], min(times), max(times))
    about = {
        "run": clean(report.run.id, 100),
        "loaderscope": clean(report.run.loaderscope or "", 40),
    }
    trace = {"traceEvents": _from_zero(events), "displayTimeUnit": "ms", "otherData": about}
    return json.dumps(trace, allow_nan=False, separators=(",", ":"))


def _shifts(run: Run) -> dict[str | None, int]:
    """Boot of a host → what puts its clock on that of the first, by the calendar."""
    offsets: dict[str | None, int] = {}
    for process in run.processes:
        if process.clock_ns is not None and process.unix_ns is not None:
            offsets.setdefault(process.boot_id, process.unix_ns - process.clock_ns)
    first = next(iter(offsets.values()), 0)
    return {boot: offset - first for boot, offset in offsets.items()}


def _from_zero(events: list[Event]) -> list[Event]:
    """`ts` and `dur` from nanoseconds to microseconds from the first event, in order of time."""
    begin = min((event["ts"] for event in events if "ts" in event), default=0)
    for event in events:
        if "ts" in event:
            event["ts"] = (event["ts"] - begin) / 1000
        if "dur" in event:
            event["dur"] = event["dur"] / 1000
    # Of slices that begin together the longest is the outermost.
    return sorted(events, key=lambda event: (event.get("ts", -1.0), -event.get("dur", 0.0)))


def _loader(
    pid: int, loader: LoaderRun, process: ProcessRun, window: Window, shift: int
) -> Iterator[Event]:
    rank = f"rank {loader.rank}" if loader.rank is not None else None
    title = (clean(loader.name, 80), use_of(loader), rank, f"process {loader.pid}")
    yield from _named("process", pid, 0, ", ".join(filter(None, title)))
    facts = _facts(loader, window)
    for tid, track in enumerate(window.tracks(), 1):
        device = f" ({clean(process.device or 'unknown', 60)})" if track.kind == "device" else ""
        yield from _named("thread", pid, tid, f"{track.name}{device}")
        approximate = {} if track.exact else {"place": "likely: only the length was measured"}
        for slices in track.slices:
            stage = slices.stage
            event = {"ph": "X", "pid": pid, "tid": tid, "name": label_of(stage), "cat": stage}
            for start, length, row in slices.each():
                args = {**facts[row], **approximate}
                yield {**event, "ts": start + shift, "dur": length, "args": args}
    for counter in ("ready", "outstanding"):
        values = window.column(counter)
        for at, value in zip(window.handed.tolist(), values.tolist(), strict=True):
            if value >= 0:
                yield _counter(pid, f"{counter} batches", at + shift, {"batches": value})


def _facts(loader: LoaderRun, window: Window) -> dict[int, dict[str, int]]:
    """Row → what its slices say of the batch."""
    names = ("epoch", "task", "samples", "worker", "worker_pid")
    columns = zip(*(window.column(name).tolist() for name in names), strict=True)
    return {
        row: {
            "batch": loader.older + row,
            **{name: value for name, value in zip(names, values, strict=True) if value >= 0},
        }
        for row, values in zip(window.rows.tolist(), columns, strict=True)
    }


def _system(pid: int, system: SystemRun, shift: int, begin: int, end: int) -> Iterator[Event]:
    yield from _named("process", pid, 0, f"system of {clean(system.host or 'this host', 60)}")
    low, high = begin - shift - AROUND_NS, end - shift + AROUND_NS
    for curve in curves(system):
        if curve.chart not in _COUNTERS:
            continue
        name, unit = _COUNTERS[curve.chart]
        rows = np.flatnonzero((curve.t_ns >= low) & (curve.t_ns <= high))
        rows = rows[:: max(1, -(-len(rows) // MAX_SAMPLES))]
        for at, value in zip(curve.t_ns[rows].tolist(), curve.values[rows].tolist(), strict=True):
            label = name.format(clean(curve.name, 60))
            yield _counter(pid, label, int(at) + shift, {unit: round(value, 3)})


def _counter(pid: int, name: str, ts: int, values: dict[str, float]) -> Event:
    return {"ph": "C", "pid": pid, "tid": 0, "name": name, "ts": ts, "args": values}


def _named(kind: str, pid: int, tid: int, name: str) -> Iterator[Event]:
    """The name of a process or thread; they stand in the order of their numbers."""
    order = {"sort_index": tid or pid}
    for what, args in (("name", {"name": name}), ("sort_index", order)):
        yield {"ph": "M", "pid": pid, "tid": tid, "name": f"{kind}_{what}", "args": args}
