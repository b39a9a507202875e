"""The pace of a loop now."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...advisors.stage_model.shares import waiting_share
from ...advisors.stage_model.verdict import lost_time
from ...profiler.store.run.run import LoaderRun

# "Now" is so long; long enough that a steady loop of one batch a second shows a steady figure.
NOW_NS = 5_000_000_000


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
