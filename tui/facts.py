"""What the reader works out of a `Run` for the screens: what the loop, each worker and the device
did when, a lane each, over the newest batches; and the pace of a loop now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..advisors.stage_model.shares import waiting_share
from ..advisors.stage_model.verdict import lost_time
from ..profiler.store.run.run import LoaderRun
from ..reports.words.timeline import Slices, Window

Floats = npt.NDArray[np.float64]

# Newest batches drawn, at most; at 10,000 batches a second that is still more than a screen
# resolves.
MAX_BATCHES = 4096
# A span that shows so many batches of each worker is easily read.
BATCHES_SHOWN = 8
# Steps that tell how long one takes.
USUAL = 256


@dataclass(frozen=True, eq=False)
class Lane:
    """`spans`: by stage. What happens inside next() is part of the wait, too. `busy_share`: of the
    time from the first to the last span; None for the training process."""

    name: str
    pid: int | None  # None of a device, 0 where it is not known
    busy_share: float | None
    spans: Mapping[str, Slices]


@dataclass(frozen=True, eq=False)
class Lanes:
    """The loop's lane first."""

    lanes: tuple[Lane, ...]
    end_ns: int
    span_ns: int  # how much to show


def lanes(loader: LoaderRun) -> Lanes:
    """The lanes of a loader; none before its second batch."""
    window = Window(loader, MAX_BATCHES)
    if len(window.rows) < 2:
        return Lanes((), 0, 0)
    found: dict[str, dict[str, Slices]] = {}
    for track in window.tracks():
        if track.kind != "pin":
            lane = found.setdefault(track.name.removesuffix(" sending"), {})
            lane.update({each.stage: each for each in track.slices})
    step = float(np.mean((window.wait + window.lengths("compute").clip(0))[-USUAL:]))
    workers = len(np.unique(window.column("worker")[window.from_worker]))
    return Lanes(
        tuple(_lane(name, spans, loader) for name, spans in found.items()),
        window.end,
        max(1_000, round(step * max(1, workers) * BATCHES_SHOWN)),
    )


def _lane(name: str, spans: dict[str, Slices], loader: LoaderRun) -> Lane:
    pid = busy = None
    if name.startswith("main"):
        pid = loader.pid
    else:
        begin = min(int(each.start_ns[0]) for each in spans.values())
        end = max(int(each.start_ns[-1] + each.length_ns[-1]) for each in spans.values())
        worked = [each.length_ns.sum() for stage, each in spans.items() if stage != "stall"]
        busy = min(1.0, float(sum(worked)) / (end - begin)) if end > begin else None
        if "fetch" in spans:
            pid = max(0, int(loader.batches["worker_pid"][spans["fetch"].row[-1]]))
    short = name.replace("worker ", "w").removeprefix("device ")
    return Lane(short, pid, busy, spans)


# "Now" is so long; long enough that a steady loop of one batch a second shows a steady figure.
NOW_NS = 5_000_000_000


# Equal steps of time that the newest batches are drawn in, at most, and the shortest of them.
COURSE_STEPS, LEAST_STEP_NS = 128, 500_000_000


@dataclass(frozen=True, eq=False)
class Course:
    """Batches and samples a second over the newest batches, and the share of the time lost (NaN
    where nothing was), in equal steps of time."""

    batches: Floats
    samples: Floats
    lost: Floats


def course(loader: LoaderRun) -> Course:
    batches, lost = loader.batches, lost_time(loader)
    passed = batches["t_ns"] + batches["wait_ns"].clip(0)
    passed = passed - passed[:1].sum()
    step = max(LEAST_STEP_NS, int(passed.max(initial=0)) // COURSE_STEPS)
    where = passed.clip(0) // step
    count, samples, gone, busy = (
        # Without the newest step, which is not over yet.
        np.bincount(where, weights=each)[: max(1, int(where.max(initial=0)))]
        for each in (np.ones(len(where)), batches["samples"].clip(0), lost.lost, lost.step)
    )
    seconds = step / 1e9
    return Course(count / seconds, samples / seconds, gone / np.where(busy > 0, busy, np.nan))


@dataclass(frozen=True)
class Pace:
    """Over the last moments: batches and samples a second, and the share of the time lost to
    loading."""

    batches_s: float | None = None
    samples_s: float | None = None
    lost_share: float | None = None


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
