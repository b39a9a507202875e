"""The pipeline from index to compute, the queue between workers and loop, and the pace now."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...advisors.schema.report_model import LoaderReport, Stage
from ...profiler.store.run.run import LoaderRun

# "Now" is so long; long enough that a steady loop of one batch a second shows a steady figure.
NOW_NS = 5_000_000_000

# Points of the queue's history: more than a wide screen shows.
POINTS = 160

# Node → (shown as, stages it sums up, whose time it takes).
_NODES = (
    ("index", ("index",), "main"),
    ("fetch", ("fetch",), "workers"),
    ("collate", ("collate",), "workers"),
    ("hand-over", ("pack", "unpack"), "workers"),
    ("pin", ("pin",), "pin"),
    ("copy", ("h2d",), "device"),
    ("compute", ("compute",), "loop"),
)

# What `LoaderReport.limit` may say, as the node that shows it.
_LIMITS = {
    "pack": "hand-over",
    "unpack": "hand-over",
    "h2d": "copy",
    "workers": "fetch",
    "loop": "compute",
}


@dataclass(frozen=True)
class Node:
    """One stage of the pipeline. `share` is of the loop's time; `used_share` of what does it
    (workers, loop, device).

    A stage nobody measured has a `reason` instead of figures.
    """

    name: str
    mean_us: float | None
    share: float | None
    used_share: float | None
    reason: str | None
    limits: bool


@dataclass(frozen=True)
class Queue:
    """Batches finished and waiting, over the newest batches: near 0 while the loop waits, near
    `room` when ahead.

    `room` is workers x prefetch_factor, None where unknown. `history` holds the mean at equal steps
    of time.
    """

    ready: float | None
    room: int | None
    history: tuple[float, ...]
    reason: str | None


@dataclass(frozen=True)
class Pace:
    """Over the last moments: batches and samples a second, and the share of the time lost to
    loading."""

    batches_s: float | None
    samples_s: float | None
    lost_share: float | None


def nodes(report: LoaderReport) -> tuple[Node, ...]:
    """The seven stages, the limiting one marked."""
    workers = report.config.get("num_workers")
    several = workers if isinstance(workers, int) and workers > 0 else 1
    found = [_node(name, parts, who, report, several) for name, parts, who in _NODES]
    limit = _limit(report, found)
    return tuple(
        Node(n.name, n.mean_us, n.share, n.used_share, n.reason, limits=n.name == limit)
        if n.name == limit
        else n
        for n in found
    )


def _node(name: str, parts: tuple[str, ...], who: str, report: LoaderReport, workers: int) -> Node:
    empty = Stage(0, None, None, None, None, None, None, "not measured")
    known = [report.stages.get(part, empty) for part in parts]
    measured = [stage for stage in known if stage.count and stage.mean_us is not None]
    if not measured:
        return Node(name, None, None, None, known[0].reason or "not measured", False)
    share = sum(stage.share or 0.0 for stage in measured)
    used = share / workers if who == "workers" else share
    if name == "hand-over":  # workers pack, the loop unpacks: the busier of the two
        by_part = {part: stage.share or 0.0 for part, stage in zip(parts, known, strict=True)}
        used = max(by_part.get("pack", 0.0) / workers, by_part.get("unpack", 0.0))
    return Node(
        name, sum(stage.mean_us or 0.0 for stage in measured), share, min(1.0, used), None, False
    )


def _limit(report: LoaderReport, found: list[Node]) -> str | None:
    """The report's own answer; else, by the verdict, computing or the busiest stage of loading."""
    if report.verdict == "too-short":
        return None
    names = {node.name for node in found}
    if report.verdict == "compute-bound":
        return "compute"
    told = _LIMITS.get(report.limit or "", report.limit)
    if told in names and told != "compute":
        return told
    loading = [node for node in found if node.used_share is not None and node.name != "compute"]
    return max(loading, key=lambda node: node.used_share or 0.0).name if loading else None


def queue(loader: LoaderRun) -> Queue:
    """How full the queue between the workers and the loop was."""
    batches = loader.batches
    prefetch = loader.config.get("prefetch_factor")
    room = (
        loader.num_workers * prefetch if isinstance(prefetch, int) and loader.num_workers else None
    )
    ready = batches["ready"]
    known = ready >= 0
    if not known.any():
        return Queue(
            None,
            room,
            (),
            "no workers: nothing is made ahead" if not loader.num_workers else "not measured",
        )
    t, ready = batches["t_ns"][known], ready[known]
    recent = ready[t >= t[-1] - NOW_NS]
    return Queue(float(recent.mean()), room, means(t, ready.astype(np.float64), POINTS), None)


def means(
    t: npt.NDArray[np.int64], values: npt.NDArray[np.float64], points: int
) -> tuple[float, ...]:
    """Means over `points` equal steps of time; a step without a value keeps that of the step
    before."""
    known = np.isfinite(values)
    t, values = t[known], values[known]
    if not len(t):
        return ()
    span = int(t.max() - t.min()) + 1
    where = ((t - t.min()) * points // span).clip(0, points - 1)
    counts = np.bincount(where, minlength=points)
    sums = np.bincount(where, weights=values, minlength=points)
    held = np.maximum.accumulate(np.where(counts > 0, np.arange(points), 0))
    return tuple((sums[held] / np.maximum(counts[held], 1)).tolist())


def pace(loader: LoaderRun, now_ns: int | None) -> Pace:
    """The pace over the last NOW_NS before `now_ns`; before the newest batch where that is None."""
    batches = loader.batches
    if batches.rows < 2:
        return Pace(None, None, None)
    handed = batches["t_ns"] + batches["wait_ns"].clip(0)
    # The newest step's end is not known yet: it counts from its beginning.
    end = int(handed[-1])
    now = end if now_ns is None else max(end, now_ns)
    recent = handed > now - NOW_NS
    count = int(np.count_nonzero(recent))
    if not count:
        return Pace(0.0, 0.0 if bool(np.any(batches["samples"] >= 0)) else None, None)
    first = max(1, len(handed) - count)
    span = (now - int(handed[first - 1])) / 1e9
    rows = slice(first, None)
    samples = batches["samples"][rows]
    wait, stall = batches["wait_ns"][rows].clip(0), batches["stall_ns"][rows]
    lost = np.where(stall >= 0, np.minimum(stall, wait), wait)
    compute = batches["compute_ns"][rows].clip(0)
    busy = float((wait + compute).sum(dtype=np.float64))
    if span <= 0 or len(wait) == 0:
        return Pace(None, None, None)
    return Pace(
        len(wait) / span,
        float(samples[samples >= 0].sum()) / span if np.any(samples >= 0) else None,
        float(lost.sum(dtype=np.float64)) / busy if busy > 0 else None,
    )
