"""How long each rank of a run that goes on waits for its data, from the newest records of each: a
look at a thousand ranks reads some kilobytes of each, every few seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...base.errors import RunUnreadable
from ...base.schema import BATCH
from ..lanes.columns import checked_header
from ..lanes.lane_reader import batch_lanes, segments
from ..lanes.segment_file import HEADER_BYTES
from .loader_summary import LoaderSummary, summary_of
from .run import LoaderRun, ProcessRun, Run

NEWEST = 256  # records of each lane
EVERY_NS = 3_000_000_000


@dataclass(frozen=True)
class RankWait:
    """`share` of the rank's newest steps, or of all where it has ended; None where there are too
    few."""

    rank: int
    host: str | None
    share: float | None


class RankWaits:
    """Of one loader at a time; looked at again every few seconds."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._due_ns = 0
        self._about: object = None
        self._found: tuple[RankWait, ...] = ()

    def of(self, run: Run, process: ProcessRun, loader: LoaderRun) -> tuple[RankWait, ...]:
        """Every rank that has this loader, by rank; none for a loader that one process alone
        has."""
        about, now = (process.path, loader.index, run.state), self._clock()
        if about != self._about or now >= self._due_ns:
            self._about, self._due_ns = about, now + EVERY_NS
            found = (
                sorted(_looked(run, process, loader), key=lambda each: each.rank)
                if process.rank is not None
                else []
            )
            self._found = tuple(found) if len(found) > 1 else ()
        return self._found


def _looked(run: Run, process: ProcessRun, loader: LoaderRun) -> Iterator[RankWait]:
    wanted, seen = summary_of(loader).identity, set()
    for other in run.processes:
        told = other.summaries or map(summary_of, other.loaders)
        same = next((each for each in told if each.identity == wanted), None)
        if same is not None and other.rank is not None and other.rank not in seen:
            seen.add(other.rank)
            share = _ended(same) if other.summaries else _newest(other.path, same.index)
            yield RankWait(other.rank, other.host, share)


def _ended(loader: LoaderSummary) -> float | None:
    wait, compute = loader.mean("wait_ns"), loader.mean("compute_ns")
    return (
        wait / (wait + compute)
        if wait is not None and compute is not None and wait + compute > 0
        else None
    )


def _newest(directory: Path, index: int) -> float | None:
    waited = stepped = 0
    for name in batch_lanes((path.name for path in directory.glob(f"batches{index}x*.seg")), index):
        try:
            info = checked_header(segments(directory, name)[-1], BATCH)
            count = min(NEWEST, info.committed)
            at = HEADER_BYTES + (info.committed - count) * info.dtype.itemsize
            records = np.fromfile(info.path, info.dtype, count, offset=at)
        except (OSError, ValueError, IndexError, RunUnreadable):
            continue
        handed = records["t_ns"] + records["wait_ns"]
        steps = np.diff(handed)
        # The first batch of an epoch is not looked at: its waiting is the start of the workers.
        good = (np.diff(records["epoch"]) == 0) & (steps > 0) & (np.diff(records["seq"]) == 1)
        good &= (records["wait_ns"][1:] >= 0) & (records["wait_ns"][1:] <= steps)
        waited += int(records["wait_ns"][1:][good].sum())
        stepped += int(steps[good].sum())
    return waited / stepped if stepped else None
