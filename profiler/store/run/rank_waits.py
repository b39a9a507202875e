"""How long each rank of a run that goes on waits for its data, from the newest records of each: a
look at a thousand ranks reads some kilobytes of each, every few seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..lanes.lane_tail import Watcher
from .loader_summary import LoaderSummary, summary_of
from .run import LoaderRun, ProcessRun, Run

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
        loaders = other.summaries or map(summary_of, other.loaders)
        same = next((each for each in loaders if each.identity == wanted), None)
        if same is not None and other.rank is not None and other.rank not in seen:
            seen.add(other.rank)
            share = _ended(same) if other.summaries else _newest(other.path, same.index)
            yield RankWait(other.rank, other.host, share)


def _ended(loader: LoaderSummary) -> float | None:
    wait, compute = loader.mean("wait_ns"), loader.mean("compute_ns")
    if wait is None or compute is None:
        return None
    return wait / (wait + compute) if wait + compute > 0 else None


def _newest(directory: Path, index: int) -> float | None:
    watcher = Watcher(directory)
    watcher.look()
    loops = [loop for loop in watcher.loops.values() if loop.loader == index]
    stepped = sum(loop.step_ns for loop in loops)
    return sum(loop.wait_ns for loop in loops) / stepped if stepped else None
