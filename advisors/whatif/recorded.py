"""Which recorded batches show how the loop runs: steady ones, and those that begin an epoch."""

import numpy as np

from ...profiler.base.arrays import Floats, Ints, Mask
from ...profiler.store.run.epoch_ends import one_each, rebuilt
from ...profiler.store.run.run import LoaderRun
from ..stage_model.verdict import MINIMUM_BATCHES, long_enough

# Batches are used in runs of consecutive ones, so that what comes together (a slow file, a busy
# disk) stays together.
BLOCK_ROWS = 32
# More batches add nothing to a simulation, and reading a million rows would take a second.
MAX_ROWS = 20_000
# In the first part of a run, batches that take many times the median warm something up.
EARLY, WARMING = 0.05, 8.0


def workers_stay(loader: LoaderRun) -> bool:
    """Whether its workers go on from one pass to the next."""
    return loader.config.get("persistent_workers") is True and not rebuilt(loader.epochs)


class TooLittle(Exception):
    """Too little was measured to predict anything; the text is one sentence that says what is
    missing."""


class Recorded:
    """At most MAX_ROWS batches of a loader, which all masks are over. `steady` batches are not the
    first of an epoch or a worker, and warm nothing up. Raises TooLittle."""

    def __init__(self, loader: LoaderRun) -> None:
        self.loader, workers = loader, loader.num_workers
        epochs = loader.batches["epoch"]
        self.rows = spread(loader.batches.rows)
        self.epoch = epochs[self.rows]
        starts = np.flatnonzero(np.diff(epochs, prepend=epochs[:1] - 1))
        # How many batches of its epoch came before each of these.
        into = self.rows - starts[np.searchsorted(starts, self.rows, side="right") - 1]
        self.head: Mask = into == 0
        if one_each(loader.epochs, loader.batches):
            self.head[1:] = False
        self.wait = self.column("wait_ns")
        # Recording a batch in detail comes between its hand-over and the loop's own work, and is
        # neither.
        compute, self.recording = self.column("compute_ns"), self.column("own_ns").clip(0)
        self.compute = np.where(compute >= 0, (compute - self.recording).clip(0), compute)
        fetch, pack = self.column("fetch_ns"), self.column("pack_ns")
        self.work = fetch + self.column("collate_ns").clip(0)
        self.usable = (self.wait >= 0) & (compute >= 0) & (fetch >= 0)
        if workers:
            self.usable &= (self.column("t_fetch_ns") >= 0) & (pack >= 0)
        self.fresh = self.head | (into < max(1, workers))
        if workers_stay(loader):  # workers start in the first epoch
            self.fresh &= self.head | (self.epoch == self.epoch[:1])
        steady = self.usable & ~self.fresh
        if np.count_nonzero(steady) < MINIMUM_BATCHES:
            steady = self.usable & ~self.head
        self.steady = steady & ~_warming(self.work, steady)
        self.step_ns: Floats = (self.wait + self.compute)[self.steady]
        self.count = len(self.step_ns)
        took_ns = float((self.time("wait_ns") + self.time("compute_ns")).sum())
        if self.count < MINIMUM_BATCHES and not long_enough(self.count, took_ns):
            known = (self.wait >= 0) & (compute >= 0) & ~self.head
            raise TooLittle(
                "how long batches take to make was not measured"
                if np.count_nonzero(known) >= MINIMUM_BATCHES
                else f"only {self.count} steady batches were recorded, and a prediction needs "
                f"{MINIMUM_BATCHES}"
            )

    def column(self, name: str) -> Floats:
        return np.nan_to_num(self.loader.batches[name][self.rows].astype(np.float64))

    def of_steady(self, name: str) -> Floats:
        """A column of the steady batches; -1 where it was not measured."""
        found: Floats = self.column(name)[self.steady]
        return found

    def time(self, name: str) -> Floats:
        """The same, 0 where it was not measured."""
        return self.of_steady(name).clip(0)

    def later(self, chosen: Mask) -> Mask:
        """Those of the epochs that training repeats: of all but the first, if there are any."""
        found = chosen & (self.epoch != self.epoch[0])
        return found if found.any() else chosen


def spread(rows: int) -> Ints:
    """Row numbers: all of them, or blocks of consecutive ones spread evenly."""
    if rows <= MAX_ROWS:
        return np.arange(rows)
    return np.unique(spread_blocks(rows, MAX_ROWS))


def spread_blocks(rows: int, count: int) -> Ints:
    """Blocks of consecutive row numbers, spread evenly, that are `count` in all. Shape: (blocks,
    rows of each)."""
    block = min(BLOCK_ROWS, rows)
    starts = np.linspace(0, rows - block, -(-count // block)).astype(np.int64)
    return starts[:, None] + np.arange(block)


def _warming(work: Floats, steady: Mask) -> Mask:
    """Which early batches made something for the first time: caches, files, compiled code. That
    does not come again, so means leave it out."""
    rows = np.flatnonzero(steady)
    found = np.zeros(len(work), bool)
    if len(rows):
        early = rows[: int(len(rows) * EARLY)]
        found[early] = work[early] > WARMING * max(1.0, float(np.median(work[rows])))
    return found
