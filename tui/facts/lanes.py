"""What the loop, each worker and the device did when: a lane each, over the newest batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...advisors.stage_model.shares import blocked_share
from ...profiler.store.lanes.columns import Columns
from ...profiler.store.run.run import LoaderRun
from ...reports.words.timeline import Slices, Window

# Newest batches drawn, at most; at 10,000 batches a second that is still more than a screen
# resolves.
MAX_BATCHES = 4096
# A span that shows so many batches of each worker is easily read.
BATCHES_SHOWN = 8
# Steps that tell how long one takes.
USUAL = 256

# A wait after which a later batch lay ready, as a lane shows it beside the stages.
BLOCKED = "blocked"
_IDLE = ("wait", BLOCKED, "stall")
# Its own memory where that was measured, else what comes next.
_MEMORY = {"uss_bytes": "own", "pss_bytes": "shared out", "rss_bytes": "resident"}

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Lane:
    """`spans`: stage → (starts, lengths) in ns, in no order. What happens inside next() is part of
    the wait, too. CPU is in cores over the last two samples. `busy_share` is of the time from the
    first to the last span; None for the loop."""

    name: str
    pid: int | None
    busy_share: float | None
    cpu_cores: float | None
    memory: tuple[int, str] | None  # bytes, and which memory that is
    spans: Mapping[str, tuple[Ints, Ints]]


@dataclass(frozen=True, eq=False)
class Lanes:
    """The loop's lane first. `overtaken_share`: of the batches, those finished after one that was
    asked for later. `blocked_share`: of all waiting, that after which a later batch lay ready. None
    without workers; `blocked_share` also with `in_order=False`."""

    lanes: tuple[Lane, ...]
    end_ns: int
    span_ns: int  # a good first choice of how much to show
    overtaken_share: float | None
    blocked_share: float | None


def lanes(loader: LoaderRun, samples: Columns | None) -> Lanes | None:
    """The lanes of a loader; None before its second batch. `samples`: of the processes of its
    host."""
    window = Window(loader, MAX_BATCHES)
    if len(window.rows) < 2:
        return None
    found: dict[str, list[Slices]] = {}
    for track in window.tracks():
        if track.kind != "pin":
            found.setdefault(track.name.removesuffix(" sending"), []).extend(track.slices)
    several = window.from_worker.any()
    return Lanes(
        tuple(_lane(name, slices, loader, samples) for name, slices in found.items()),
        int(window.handed[-1] + max(0, window.compute[-1])),
        _span(window),
        _overtaken(window) if several else None,
        blocked_share(loader.batches) if several and _in_order(loader) else None,
    )


def _lane(name: str, slices: list[Slices], loader: LoaderRun, samples: Columns | None) -> Lane:
    spans = {each.stage: (each.start_ns, each.length_ns) for each in slices}
    pid = busy = None
    if name.startswith("main"):
        pid = loader.pid
        (start, length), (rows,) = spans["wait"], (x.row for x in slices if x.stage == "wait")
        held = (loader.batches["ready"][rows] > 0) & _in_order(loader)
        spans["wait"], spans[BLOCKED] = (start[~held], length[~held]), (start[held], length[held])
    else:
        begin = min(int(start.min()) for start, _ in spans.values())
        end = max(int((start + length).max()) for start, length in spans.values())
        worked = sum(int(each[1].sum()) for stage, each in spans.items() if stage not in _IDLE)
        busy = min(1.0, worked / (end - begin)) if end > begin else None
    if name.startswith("worker"):
        pid = int(loader.batches["worker_pid"][slices[0].row[-1]])
    cpu, memory = _usage(samples, pid)
    short = name.replace("main", "loop").replace("worker ", "w").replace("device copies", "copies")
    return Lane(short, pid if pid and pid > 0 else None, busy, cpu, memory, spans)


def _in_order(loader: LoaderRun) -> bool:
    return loader.config.get("in_order") is not False


def _overtaken(window: Window) -> float:
    """Share of the workers' batches that were sent after one of the same epoch that was asked for
    later."""
    made, epoch = window.from_worker, window.column("epoch")
    sent = (window.sent - window.sent.min()).astype(np.float64)
    sent += epoch * (sent.max() + 1.0)  # batches of two epochs do not overtake each other
    sent = sent[made][np.lexsort((window.column("task")[made], epoch[made]))]
    soonest = np.minimum.accumulate(sent[::-1])[::-1]
    return float(np.count_nonzero(sent[:-1] > soonest[1:]) / len(sent))


def _usage(samples: Columns | None, pid: int | None) -> tuple[float | None, tuple[int, str] | None]:
    """Cores over the last two samples of a process, and its memory at the last."""
    if samples is None or pid not in samples["pid"]:
        return None, None
    rows = np.flatnonzero(samples["pid"] == pid)[-2:]
    spent = np.diff(samples["cpu_user_ns"][rows] + samples["cpu_system_ns"][rows])
    passed = np.diff(samples["t_ns"][rows])
    cores = max(0.0, float(spent[0] / passed[0])) if len(passed) and passed[0] > 0 else None
    memory = ((int(samples[name][rows[-1]]), kind) for name, kind in _MEMORY.items())
    return cores, next((each for each in memory if each[0] >= 0), None)


def _span(window: Window) -> int:
    """Time that shows some batches of each worker, or some steps of the loop."""
    step = float(np.mean((window.wait + window.compute.clip(0))[-USUAL:]))
    workers = len(np.unique(window.column("worker")[window.from_worker]))
    return max(1_000, round(step * max(1, workers) * BATCHES_SHOWN))
