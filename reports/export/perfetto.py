"""The newest batches as a trace in Chrome's JSON format: opens in ui.perfetto.dev and in chrome://tracing.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU ("Trace
Event Format").
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ...advisors.schema.report_model import Report
from ...profiler.base.metadata import clean
from ...profiler.store.lanes.columns import Columns
from ...profiler.store.run.run import LoaderRun, ProcessRun, Run, SystemRun
from ..words.glosses import label_of
from ..words.timeline import Track, Window
from ..words.uses import use_of

# 2,000 batches of one loader are some 25,000 events, 4 MB; a viewer takes more, a browser tab not
# much more.
BATCHES = 2_000
MAX_LOADERS = 64
MAX_SAMPLES = 5_000
# Loaders are numbered from 1, hosts from here.
_FIRST_HOST = 1_000

Event = dict[str, Any]
Ints = npt.NDArray[np.int64]


def render_perfetto(report: Report, run: Run, batches: int = BATCHES) -> str:
    """The trace as JSON text: the newest `batches` of each loader, and the system's samples around
    them.

    Each loader is a "process" of the trace, with a thread each for the training loop, the workers,
    their queues, the pin thread and the device. Of the last two only lengths are known: their
    places are the likely ones, and the slices say so. Times are microseconds from the first event
    on the clock of the host; hosts are aligned by the calendar.
    """
    clock = _Clock(run)
    events: list[Event] = []
    spans: list[tuple[int, int]] = []
    pairs = [(process, loader) for process in run.processes for loader in process.loaders]
    for number, (process, columns) in enumerate(pairs[:MAX_LOADERS], 1):
        window = Window(columns, batches)
        if not len(window.rows):
            continue
        shift = clock.shift(process.boot_id)
        title = [
            clean(columns.name, 80),
            use_of(columns),
            f"rank {columns.rank}" if columns.rank is not None else None,
        ]
        name = ", ".join(filter(None, [*title, f"process {columns.pid}"]))
        events += _loader(number, name, columns, process, window, shift)
        spans.append(
            (
                int(window.start.min()) + shift,
                int((window.handed + window.compute.clip(0)).max()) + shift,
            )
        )
    for number, system in enumerate(run.systems, _FIRST_HOST):
        shift_ = clock.shift_if_known(system.boot_id)
        if shift_ is not None and spans:
            events += _system(
                number, system, shift_, min(a for a, _ in spans), max(b for _, b in spans)
            )
    return json.dumps(
        {
            "traceEvents": _from_zero(events),
            "displayTimeUnit": "ms",
            "otherData": {
                "run": clean(report.run.id, 100),
                "loaderscope": clean(report.run.loaderscope or "", 40),
            },
        },
        allow_nan=False,
        separators=(",", ":"),
    )


class _Clock:
    """Puts the clocks of several hosts (boots) on that of the first, by the calendar."""

    def __init__(self, run: Run) -> None:
        self._offsets: dict[str | None, int] = {}  # boot → calendar less clock
        for process in run.processes:
            if process.clock_ns is not None and process.unix_ns is not None:
                self._offsets.setdefault(process.boot_id, process.unix_ns - process.clock_ns)
        self._first = next(iter(self._offsets.values()), 0)

    def shift(self, boot_id: str | None) -> int:
        found = self.shift_if_known(boot_id)
        return 0 if found is None else found

    def shift_if_known(self, boot_id: str | None) -> int | None:
        offset = self._offsets.get(boot_id)
        return offset - self._first if offset is not None else None


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
    pid: int, name: str, loader: LoaderRun, process: ProcessRun, window: Window, shift: int
) -> Iterator[Event]:
    yield _meta(pid, 0, "process_name", name=name)
    yield _meta(pid, 0, "process_sort_index", sort_index=pid)
    facts = _facts(loader, window)
    sent: dict[
        int, tuple[int, int]
    ] = {}  # row → thread, and when the worker had done its last with it
    waited: dict[int, tuple[int, int]] = {}
    for tid, track in enumerate(window.tracks(), 1):
        label = (
            f"{track.name} ({clean(process.device or 'unknown', 60)})"
            if track.kind == "device"
            else track.name
        )
        yield _meta(pid, tid, "thread_name", name=label)
        yield _meta(pid, tid, "thread_sort_index", sort_index=tid)
        yield from _track(pid, tid, track, shift, facts)
        if track.kind in ("worker", "sending"):
            sent.update(_ends(tid, track, ("fetch", "collate", "pack")))
        elif track.kind == "main":
            waited.update(_ends(tid, track, ("wait",)))
    for row in sorted(sent.keys() & waited.keys()):
        yield from _arrow(f"{pid}.{row}", pid, sent[row], waited[row], shift)
    for counter in ("ready", "outstanding"):
        values = window.column(counter)
        for at, value in zip(window.handed.tolist(), values.tolist(), strict=True):
            if value >= 0:
                yield _counter(pid, f"{counter} batches", at + shift, {"batches": value})


def _facts(loader: LoaderRun, window: Window) -> dict[int, dict[str, int]]:
    """Row → what its slices say of the batch."""
    columns = {
        name: window.column(name).tolist()
        for name in ("epoch", "task", "samples", "worker", "worker_pid")
    }
    found = {}
    for at, row in enumerate(window.rows.tolist()):
        known = {name: values[at] for name, values in columns.items() if values[at] >= 0}
        found[row] = {"batch": loader.folded.records + row, **known}
    return found


def _track(
    pid: int, tid: int, track: Track, shift: int, facts: dict[int, dict[str, int]]
) -> Iterator[Event]:
    approximate = {} if track.exact else {"place": "likely: only the length was measured"}
    for slices in track.slices:
        name = label_of(slices.stage)
        rows = zip(
            slices.start_ns.tolist(), slices.length_ns.tolist(), slices.row.tolist(), strict=True
        )
        for start, length, row in rows:
            yield {
                "ph": "X",
                "pid": pid,
                "tid": tid,
                "name": name,
                "cat": slices.stage,
                "ts": start + shift,
                "dur": length,
                "args": {**facts[row], **approximate},
            }


def _ends(tid: int, track: Track, stages: tuple[str, ...]) -> dict[int, tuple[int, int]]:
    """Row → (thread, the last nanosecond inside the slice); of several stages the last one
    listed."""
    found = {}
    for slices in track.slices:
        if slices.stage in stages:
            inside = slices.start_ns + (slices.length_ns - 1).clip(0)
            found.update(
                {
                    row: (tid, end)
                    for row, end in zip(slices.row.tolist(), inside.tolist(), strict=True)
                }
            )
    return found


def _arrow(
    id_: str, pid: int, begin: tuple[int, int], end: tuple[int, int], shift: int
) -> Iterator[Event]:
    """From the slice in which the worker made or sent the batch to the wait that it ended."""
    common = {"cat": "batch", "name": "hand-over", "id": id_, "pid": pid}
    yield {"ph": "s", "tid": begin[0], "ts": min(begin[1], end[1]) + shift, **common}
    yield {"ph": "f", "bp": "e", "tid": end[0], "ts": end[1] + shift, **common}


def _system(pid: int, system: SystemRun, shift: int, begin: int, end: int) -> Iterator[Event]:
    yield _meta(pid, 0, "process_name", name=f"system of {clean(system.host or 'this host', 60)}")
    yield _meta(pid, 0, "process_sort_index", sort_index=pid)
    machine = _within(system.machine, begin - shift, end - shift)
    idle, iowait = (
        system.machine.floats(f"cpu_{name}_pct")[machine] for name in ("idle", "iowait")
    )
    busy = 100 - idle - np.nan_to_num(iowait)
    yield from _curve(
        pid, "CPU busy (100 = all cores)", "percent", system.machine, machine, busy, shift
    )
    for name, label, unit in (
        ("mem_available_bytes", "memory available", "bytes"),
        ("shm_used_bytes", "/dev/shm used", "bytes"),
        ("cgroup_mem_bytes", "container memory", "bytes"),
    ):
        values = system.machine.floats(name)[machine]
        yield from _curve(pid, label, unit, system.machine, machine, values, shift)
    for index in np.unique(system.gpu["gpu"]).tolist()[:64]:
        rows = _within(system.gpu, begin - shift, end - shift)
        rows = rows[system.gpu["gpu"][rows] == index]
        for name, label, unit in (
            ("util_pct", "some kernel running", "percent"),
            ("mem_used_bytes", "memory", "bytes"),
        ):
            values = system.gpu.floats(name)[rows]
            yield from _curve(pid, f"GPU {index} {label}", unit, system.gpu, rows, values, shift)


def _within(columns: Columns, begin: int, end: int) -> npt.NDArray[np.intp]:
    """Rows of samples from one before `begin` to one after `end`, thinned where there are too
    many."""
    t = columns["t_ns"]
    rows = np.flatnonzero((t >= begin - 2 * 10**9) & (t <= end + 2 * 10**9))
    return rows[:: max(1, -(-len(rows) // MAX_SAMPLES))]


def _curve(
    pid: int,
    name: str,
    unit: str,
    columns: Columns,
    rows: npt.NDArray[np.intp],
    values: npt.NDArray[np.float64],
    shift: int,
) -> Iterator[Event]:
    for at, value in zip(columns["t_ns"][rows].tolist(), values.tolist(), strict=True):
        if np.isfinite(value):
            yield _counter(pid, name, at + shift, {unit: round(value, 3)})


def _counter(pid: int, name: str, ts: int, values: dict[str, float]) -> Event:
    return {"ph": "C", "pid": pid, "tid": 0, "name": name, "ts": ts, "args": values}


def _meta(pid: int, tid: int, what: str, **args: object) -> Event:
    return {"ph": "M", "pid": pid, "tid": tid, "name": what, "args": args}
