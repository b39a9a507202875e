"""The pipeline from index to compute, the queue between workers and loop, and the pace now."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...advisors.schema.report_model import LoaderReport
from ...advisors.stage_model.shares import waiting_share
from ...advisors.stage_model.verdict import lost_time
from ...profiler.store.run.run import LoaderRun

# "Now" is so long; long enough that a steady loop of one batch a second shows a steady figure.
NOW_NS = 5_000_000_000

# Node → the stages it sums up.
_NODES = {
    "index": ("index",),
    "fetch": ("fetch",),
    "collate": ("collate",),
    "hand-over": ("pack", "unpack"),
    "pin": ("pin",),
    "copy": ("h2d",),
    "compute": ("compute",),
}
_IN_WORKERS = ("fetch", "collate", "pack")


@dataclass(frozen=True)
class Node:
    """One stage of the pipeline. `share` is of the loop's time; `used_share` of what does it
    (workers, loop, device).

    A stage nobody measured has a `reason` instead of figures.
    """

    name: str
    mean_us: float | None = None
    share: float | None = None
    used_share: float | None = None
    reason: str | None = None


@dataclass(frozen=True, eq=False)
class Queue:
    """Batches finished and waiting, at each of the newest batches in `history`: near 0 while the
    loop waits, near `room` when ahead. `room` is workers x prefetch_factor, None without workers.
    """

    ready: float | None  # on average, now
    room: int | None
    history: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pace:
    """Over the last moments: batches and samples a second, and the share of the time lost to
    loading."""

    batches_s: float | None = None
    samples_s: float | None = None
    lost_share: float | None = None


def nodes(report: LoaderReport) -> list[Node]:
    """The seven stages, in the order of the pipeline."""
    return [_node(name, parts, report) for name, parts in _NODES.items()]


def _node(name: str, parts: tuple[str, ...], report: LoaderReport) -> Node:
    stages = {part: report.stages[part] for part in parts if part in report.stages}
    known = {part: stage for part, stage in stages.items() if stage.mean_us is not None}
    if not known:
        reasons = (stage.reason for stage in stages.values() if stage.reason)
        return Node(name, reason=next(reasons, "not measured"))
    workers = report.config.get("num_workers")
    several = max(1, workers) if isinstance(workers, int) else 1
    shares = {part: stage.share or 0.0 for part, stage in known.items()}
    # Workers pack and the loop unpacks: the busier of the two counts.
    used = max(share / (several if part in _IN_WORKERS else 1) for part, share in shares.items())
    mean_us = sum(stage.mean_us or 0.0 for stage in known.values())
    return Node(name, mean_us, sum(shares.values()), min(1.0, used))


def limiting(report: LoaderReport, found: list[Node]) -> str | None:
    """The stage that limits: the report's own answer, or by the verdict computing or the busiest
    stage of loading."""
    if report.verdict == "too-short":
        return None
    if report.verdict == "compute-bound":
        return "compute"
    loading = {node.name: node.used_share for node in found if node.name != "compute"}
    limit = "fetch" if report.limit == "workers" else report.limit
    told = next((name for name in loading if limit in _NODES[name]), None)
    return told or max(loading, key=lambda name: loading[name] or -1.0)


def queue(loader: LoaderRun) -> Queue:
    """How full the queue between the workers and the loop was."""
    ready, t = loader.batches["ready"], loader.batches["t_ns"]
    known = ready >= 0
    t, ready = t[known], ready[known].astype(np.float64)
    room = loader.num_workers * loader.prefetch_factor or None
    recent = ready[t >= t[-1] - NOW_NS] if len(t) else ready
    return Queue(float(recent.mean()) if len(t) else None, room, ready)


def pace(loader: LoaderRun, now_ns: int | None) -> Pace:
    """The pace over the last NOW_NS before `now_ns`; before the newest batch where that is None."""
    batches = loader.batches
    if batches.rows < 2:
        return Pace()
    samples, lost = batches["samples"], lost_time(loader)
    handed = batches["t_ns"] + batches["wait_ns"].clip(0)
    now = max(int(handed[-1]), now_ns or 0)
    count = int(np.count_nonzero(handed > now - NOW_NS))
    if not count:
        return Pace(0.0, 0.0 if np.any(samples >= 0) else None)
    # The newest step's end is not known yet: it counts from its beginning.
    first = max(1, len(handed) - count)
    seconds = (now - int(handed[first - 1])) / 1e9
    if seconds <= 0:
        return Pace()
    samples = samples[first:]
    return Pace(
        (len(handed) - first) / seconds,
        float(samples[samples >= 0].sum()) / seconds if np.any(samples >= 0) else None,
        waiting_share(lost.lost[first:], lost.step[first:]),
    )
