"""What the reader works out of a `Run` for the screens: what the loop, each worker and the device
did when, a lane each, over the newest batches; and the pace of a loop."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..advisors.stage_model.verdict import lost_time
from ..profiler.base.arrays import Floats
from ..profiler.store.run.run import LoaderRun
from ..reports.words.timeline import Slices, Window

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
    """Batches and samples a second over the newest batches, and the share of the time lost to
    loading, in equal steps of time; NaN where it is not known."""

    step_ns: int
    batches: Floats
    samples: Floats
    lost: Floats

    def now(self, values: Floats) -> float | None:
        """Over the last moments."""
        newest = values[-max(1, NOW_NS // self.step_ns) :]
        known = newest[~np.isnan(newest)]
        return float(known.mean()) if len(known) else None


def course(loader: LoaderRun, now_ns: int | None) -> Course:
    """Until `now_ns`; until the newest batch where that is None."""
    batches, lost = loader.batches, lost_time(loader)
    handed = batches["t_ns"] + batches["wait_ns"].clip(0)
    if len(handed) < 2:
        return Course(LEAST_STEP_NS, *np.empty((3, 0)))
    passed = (handed - handed[0]).clip(0)
    end = max(int(passed.max()), (now_ns or 0) - int(handed[0]), 1)
    step = min(end, max(LEAST_STEP_NS, end // COURSE_STEPS))
    steps = end // step  # the one after these is not over yet
    count, samples, gone, busy = (
        np.bincount(passed // step, weights=each, minlength=steps)[:steps]
        for each in (np.ones(len(passed)), batches.floats("samples"), lost.lost, lost.step)
    )
    seconds = step / 1e9
    return Course(step, count / seconds, samples / seconds, gone / np.where(busy > 0, busy, np.nan))
