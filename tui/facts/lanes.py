"""What each worker, and the loop, did when: lanes of intervals for the newest batches."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ...profiler.store.lanes.columns import Columns
from ...profiler.store.run.run import LoaderRun, Run
from ...reports.words.timeline import Track, Window

# What a lane may be doing; the order is that of the drawing.
FETCH, COLLATE, HAND_OVER, WAIT, BLOCKED, COMPUTE, COPY, STILL = range(8)
_ON_DEVICE = {"h2d": COPY, "compute_device": COMPUTE, "stall": STILL}

# Newest batches drawn, at most; at 10,000 batches a second that is still more than a screen
# resolves.
MAX_BATCHES = 4096
MAX_LANES = 128

# A span that shows so many batches of each worker is easily read.
BATCHES_SHOWN = 8

Times = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Lane:
    """One worker, or the loop (worker None), or what a `device` did, by its name. `starts`, `ends`
    (ns) and `kinds` are its intervals, in no order.

    CPU is in cores over the last samples. `busy_share` is of the stretch from its first to its last
    interval.
    """

    worker: int | None
    pid: int | None
    batches: int
    busy_share: float | None
    cpu_cores: float | None
    memory_bytes: int | None
    memory_kind: str
    starts: Times
    ends: Times
    kinds: npt.NDArray[np.int8]
    device: str | None = None


@dataclass(frozen=True, eq=False)
class Lanes:
    """The loop's lane first. Orders are over the newest batches:

    `overtaken_share`: batches that were finished later than one asked for after them; `blocked_s`:
    waiting while a later batch lay ready (head of line), `blocked_share`: of all waiting. None with
    `in_order=False` or no workers.
    """

    lanes: tuple[Lane, ...]
    end_ns: int
    span_ns: int  # a good first choice of how much to show
    overtaken_share: float | None
    blocked_s: float | None
    blocked_share: float | None
    reason: str | None


def lanes(run: Run, loader: LoaderRun) -> Lanes | None:
    """The lanes of a loader; None before its second batch."""
    batches = loader.batches
    if batches.rows < 2:
        return None
    rows = slice(max(0, batches.rows - MAX_BATCHES), None)
    c = {name: batches[name][rows] for name in _NEEDED}
    processes = _processes(run, loader)
    worked = (c["worker"] >= 0) & (c["t_fetch_ns"] >= 0)
    late, blocked = _order(c, worked)
    if loader.config.get("in_order") is False:
        blocked = np.zeros_like(blocked)
    main = _main(c, blocked, processes, loader.pid, with_work=not worked.any())
    found = [main]
    numbers = np.unique(c["worker"][worked])[:MAX_LANES]
    for number in numbers.tolist():
        mine = worked & (c["worker"] == number)
        found.append(_worker(number, {name: values[mine] for name, values in c.items()}, processes))
    found += [_device(track) for track in Window(loader, MAX_BATCHES).device()]
    end = int((c["t_ns"] + c["wait_ns"].clip(0) + c["compute_ns"].clip(0))[-1])
    span = _span(c, len(numbers))
    waited = float(c["wait_ns"].clip(0).sum())
    held = float((blocked[:, 1] - blocked[:, 0]).sum())
    reason = None if len(numbers) else "no workers: the loop does everything itself"
    return Lanes(
        tuple(found),
        end,
        span,
        float(late[worked].mean()) if len(numbers) else None,
        held / 1e9 if len(numbers) else None,
        held / waited if len(numbers) and waited else None,
        reason,
    )


_NEEDED = (
    "t_ns",
    "wait_ns",
    "compute_ns",
    "index_ns",
    "fetch_ns",
    "collate_ns",
    "t_fetch_ns",
    "pack_ns",
    "worker",
    "worker_pid",
    "task",
    "epoch",
)


def _finished(c: dict[str, Any]) -> Times:
    made: Times = (
        c["t_fetch_ns"] + c["fetch_ns"].clip(0) + c["collate_ns"].clip(0) + c["pack_ns"].clip(0)
    )
    return made


def _order(c: dict[str, Any], worked: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.bool_], Times]:
    """Which batches were finished after one of the same epoch that was asked for later; and for
    each the stretch [from, until) of its wait in which such a one lay ready. Shapes (n,) and (n,
    2).
    """
    begun = c["t_ns"]
    late = np.zeros(len(begun), dtype=np.bool_)
    stretch = np.stack([begun, begun], axis=1)
    rows = np.flatnonzero(worked)
    if len(rows) < 2:
        return late, stretch
    rows = rows[np.lexsort((c["task"][rows], c["epoch"][rows]))]
    made, epoch = _finished(c)[rows], c["epoch"][rows]
    soonest = np.full(len(rows), np.iinfo(np.int64).max)
    for begin, end in _runs_of(epoch):
        # The earliest end among all later ones, each epoch by itself.
        soonest[begin : end - 1] = np.minimum.accumulate(made[begin:end][::-1])[::-1][1:]
    late[rows] = made > soonest
    start = np.maximum(begun[rows], soonest)
    until = np.minimum(made, begun[rows] + c["wait_ns"][rows].clip(0))
    held = until > start
    stretch[rows[held]] = np.stack([start[held], until[held]], axis=1)
    return late, stretch


def _runs_of(values: npt.NDArray[np.int32]) -> list[tuple[int, int]]:
    edges = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)]
    return list(pairwise(edges))


def _main(
    c: dict[str, Any], blocked: Times, processes: Columns | None, pid: int, with_work: bool
) -> Lane:
    begun, wait = c["t_ns"], c["wait_ns"].clip(0)
    handed = begun + wait
    starts, ends = [handed], [handed + c["compute_ns"].clip(0)]
    kinds = [np.full(len(begun), COMPUTE)]
    if with_work:  # without workers, fetching and collating happen inside next()
        at = begun + c["index_ns"].clip(0)
        for name, kind in (("fetch_ns", FETCH), ("collate_ns", COLLATE)):
            until = np.minimum(at + c[name].clip(0), handed)
            starts.append(at)
            ends.append(until)
            kinds.append(np.full(len(begun), kind))
            at = until
        starts.append(at)
        ends.append(handed)
        kinds.append(np.full(len(begun), WAIT))
    else:
        for begin, end, kind in (
            (begun, blocked[:, 0], WAIT),
            (blocked[:, 0], blocked[:, 1], BLOCKED),
            (blocked[:, 1], handed, WAIT),
        ):
            starts.append(begin)
            ends.append(end)
            kinds.append(np.full(len(begun), kind))
    return _lane(None, pid, len(begun), starts, ends, kinds, processes, busy=None)


def _worker(number: int, c: dict[str, Any], processes: Columns | None) -> Lane:
    at = c["t_fetch_ns"]
    starts, ends, kinds = [], [], []
    for name, kind in (("fetch_ns", FETCH), ("collate_ns", COLLATE), ("pack_ns", HAND_OVER)):
        until = at + c[name].clip(0)
        starts.append(at)
        ends.append(until)
        kinds.append(np.full(len(at), kind))
        at = until
    span = int(at.max() - c["t_fetch_ns"].min())
    worked = float((at - c["t_fetch_ns"]).sum())
    pid = int(c["worker_pid"][-1])
    busy = min(1.0, worked / span) if span > 0 else None
    return _lane(number, pid if pid > 0 else None, len(at), starts, ends, kinds, processes, busy)


def _device(track: Track) -> Lane:
    starts = np.concatenate([slices.start_ns for slices in track.slices])
    ends = np.concatenate([slices.start_ns + slices.length_ns for slices in track.slices])
    kinds = np.concatenate(
        [np.full(len(slices.row), _ON_DEVICE[slices.stage], np.int8) for slices in track.slices]
    )
    span, worked = int(ends.max() - starts.min()), int((ends - starts)[kinds != STILL].sum())
    batches = max(len(slices.row) for slices in track.slices)
    busy = min(1.0, worked / span) if span > 0 else None
    name = "device" if track.name == "device" else "copies"
    return Lane(None, None, batches, busy, None, None, "", starts, ends, kinds, name)


def _lane(
    number: int | None,
    pid: int | None,
    count: int,
    starts: list[Times],
    ends: list[Times],
    kinds: list[npt.NDArray[Any]],
    processes: Columns | None,
    busy: float | None,
) -> Lane:
    cpu, memory, kind = _usage(processes, pid)
    return Lane(
        number,
        pid,
        count,
        busy,
        cpu,
        memory,
        kind,
        np.concatenate(starts),
        np.concatenate(ends),
        np.concatenate(kinds).astype(np.int8),
    )


def _processes(run: Run, loader: LoaderRun) -> Columns | None:
    """The samples of the host on which this loader's process runs."""
    host = next(
        (run.host_of(p) for p in run.processes if p.pid == loader.pid and p.rank == loader.rank),
        None,
    )
    return host.process if host is not None and host.process.rows else None


def _usage(processes: Columns | None, pid: int | None) -> tuple[float | None, int | None, str]:
    """Cores over the last two samples, and memory: its own where that was measured, else
    resident."""
    if processes is None or pid is None:
        return None, None, ""
    rows = np.flatnonzero(processes["pid"] == pid)[-2:]
    if not len(rows):
        return None, None, ""
    cores = None
    if len(rows) == 2:
        seconds = float(processes["t_ns"][rows[1]] - processes["t_ns"][rows[0]])
        used = [
            float(processes[n][rows[1]] - processes[n][rows[0]])
            for n in ("cpu_user_ns", "cpu_system_ns")
        ]
        cores = max(0.0, sum(used) / seconds) if seconds > 0 else None
    for name, kind in (
        ("uss_bytes", "own"),
        ("pss_bytes", "shared out"),
        ("rss_bytes", "resident"),
    ):
        value = int(processes[name][rows[-1]])
        if value >= 0:
            return cores, value, kind
    return cores, None, ""


def _span(c: dict[str, Any], workers: int) -> int:
    """Time that shows some batches of each worker, or some steps of the loop."""
    steps = c["wait_ns"].clip(0) + c["compute_ns"].clip(0)
    step = float(np.median(steps[-256:]))
    made = np.median(
        (c["fetch_ns"].clip(0) + c["collate_ns"].clip(0) + c["pack_ns"].clip(0))[-256:]
    )
    cycle = max(step * max(1, workers), float(made))
    return max(1_000, round(cycle * BATCHES_SHOWN))
