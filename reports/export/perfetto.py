"""The newest batches as a trace in Chrome's JSON format: opens in ui.perfetto.dev and in chrome://tracing.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU ("Trace
Event Format").
"""

import json
from collections.abc import Iterator
from typing import Any

from ...advisors.schema.report_model import Report
from ...profiler.base.metadata import clean
from ...profiler.store.run.run import LoaderRun, ProcessRun, Run
from ..words.glosses import label_of
from ..words.loaders import use_of
from ..words.timeline import Window

# 2,000 batches of one loader are some 25,000 events, 4 MB; a viewer takes more, a browser tab not
# much more.
BATCHES = 2_000
MAX_LOADERS = 64

Event = dict[str, Any]


def render_perfetto(report: Report, run: Run, batches: int = BATCHES) -> str:
    """The trace as JSON text: the newest `batches` of each loader.

    Each loader is a "process" of the trace, with a thread each for the training loop, the workers,
    their queues, the pin thread and the device. Of the last two only lengths are known: their
    places are the likely ones, and the slices say so. Times are microseconds from the first event
    on the clock of the first host: of a job on several, only what that one recorded is shown.
    """
    events: list[Event] = []
    first = [each for each in run.processes if each.boot_id == run.processes[0].boot_id]
    pairs = [(process, loader) for process in first for loader in process.loaders]
    for number, (process, columns) in enumerate(pairs[:MAX_LOADERS], 1):
        window = Window(columns, batches)
        if len(window.rows):
            events += _loader(number, columns, process, window)
    about = {
        "run": clean(report.run.id, 100),
        "loaderscope": clean(report.run.loaderscope or "", 40),
    }
    trace = {"traceEvents": _from_zero(events), "displayTimeUnit": "ms", "otherData": about}
    return json.dumps(trace, allow_nan=False, separators=(",", ":"))


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


def _loader(pid: int, loader: LoaderRun, process: ProcessRun, window: Window) -> Iterator[Event]:
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
                yield {**event, "ts": start, "dur": length, "args": args}
    for counter in ("ready", "outstanding"):
        values = window.column(counter)
        for at, value in zip(window.handed.tolist(), values.tolist(), strict=True):
            if value >= 0:
                event = {"ph": "C", "pid": pid, "tid": 0, "name": f"{counter} batches"}
                yield {**event, "ts": at, "args": {"batches": value}}


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


def _named(kind: str, pid: int, tid: int, name: str) -> Iterator[Event]:
    """The name of a process or thread; they stand in the order of their numbers."""
    order = {"sort_index": tid or pid}
    for what, args in (("name", {"name": name}), ("sort_index", order)):
        yield {"ph": "M", "pid": pid, "tid": tid, "name": f"{kind}_{what}", "args": args}
