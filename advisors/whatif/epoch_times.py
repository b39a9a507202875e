"""Costs that come once an epoch: starting and ending workers, drawing a permutation, cold
workers."""

import numpy as np

from ...profiler.base.arrays import Ints, Mask
from ...profiler.store.run.run import LoaderRun
from ..stage_model.stages import startup_ns
from . import costs
from .recorded import Recorded, workers_stay

# Ending workers may take this many times as long as usual; a longer pause between epochs is
# something else, such as validation.
STOP_AT_MOST = 6.0


def epoch_batches(loader: LoaderRun) -> int:
    """Batches of a typical epoch: of those that ran to their end, else as the data set's length
    says."""
    epochs = loader.epochs
    whole = epochs["batches"][(epochs["how"] == 1) & (epochs["batches"] > 0)]
    if len(whole):
        return max(1, int(np.median(whole)))
    length, size = loader.config.get("dataset_len"), loader.config.get("batch_size")
    expected = 0
    if isinstance(length, int) and isinstance(size, int) and size > 0:
        expected = length // size
    return max(1, expected, loader.count // max(1, epochs.rows))


def start_ns(seen: Recorded) -> float:
    """From `iter()` to the beginning of the first fetch, median over the epochs training
    repeats."""
    if not seen.loader.num_workers:
        return 0.0
    first, rows, epochs = seen.head & seen.usable, _repeated(seen.loader), seen.loader.epochs
    began = dict(zip(seen.epoch[first], seen.column("t_fetch_ns")[first], strict=True))
    pairs = zip(epochs["epoch"][rows], epochs["t_iter_ns"][rows], strict=True)
    found = [began[number] - float(t) for number, t in pairs if number in began]
    return max(0.0, float(np.median(found))) if found else 0.0


def stop_ns(loader: LoaderRun) -> float:
    """Ending the workers: the time between two epochs, or the usual time if that is too long."""
    if not loader.num_workers or workers_stay(loader):
        return 0.0
    usual = costs.STOP_NS * loader.num_workers
    ends, begins = loader.epochs["t_end_ns"][:-1], loader.epochs["t_iter_ns"][1:]
    whole = _as_coded(loader)
    gaps = (begins - ends)[(ends >= 0) & whole[1:] & whole[:-1]]
    gap = float(np.median(gaps)) if len(gaps) else -1.0
    return gap if 0.0 <= gap <= STOP_AT_MOST * usual else usual


def draw_ns(seen: Recorded) -> float:
    """Drawing once an epoch: with the first batch, torch's shuffle makes a permutation of the whole
    data set. One repeated start is enough to know it."""
    index = seen.column("index_ns")
    first = seen.later(seen.head & (index >= 0))
    if not first.any():
        return 0.0
    return max(0.0, float(np.median(index[first]) - np.median(seen.time("index_ns"))))


def cold_ns(seen: Recorded) -> float:
    """The extra time of making and sending an epoch's first batch, in each worker."""
    made = seen.work + seen.column("pack_ns").clip(0)
    # In the first epoch, files are read for the first time.
    first = seen.later(seen.fresh & seen.usable)
    if not first.any():
        return 0.0
    return max(0.0, float(np.median(made[first]) - np.median(made[seen.steady])))


def measured_ns(seen: Recorded, start: float, stop: float) -> tuple[float, float]:
    """Time a batch: over the whole epochs that training repeats, from `iter()` to the end of the
    workers, and without their starts."""
    inner = float(np.mean((seen.wait + seen.compute)[seen.usable & ~seen.head]))
    epochs, rows = seen.loader.epochs, _repeated(seen.loader)
    took = epochs["t_end_ns"] - epochs["t_iter_ns"]
    whole = (took > 0) & (epochs["how"] == 1) & (epochs["batches"] > 0) & _as_coded(seen.loader)
    rows = rows[whole[rows]]
    if not len(rows):
        return inner + start / epoch_batches(seen.loader), inner
    recording = seen.recording[seen.later(np.ones_like(seen.head))].mean()
    total = (took[rows].astype(np.float64) + stop).sum()
    return float(total / epochs["batches"][rows].sum() - recording), inner


def _repeated(loader: LoaderRun) -> Ints:
    """The epochs that training repeats: all but the first, or the first if it is the only one. Of a
    tuned loader, only epochs that used the code's settings throughout count, and the first, which
    begins with them."""
    coded = _as_coded(loader)
    coded[:1] = True
    found = np.flatnonzero((startup_ns(loader) >= 0) & coded)
    return found[1:] if len(found) > 1 else found


def _as_coded(loader: LoaderRun) -> Mask:
    """Which epochs are complete: `LoaderRun.as_coded` leaves out batches that tuning made with
    other settings."""
    epochs = loader.epochs
    if loader.tuning is None:
        return np.ones(epochs.rows, bool)
    numbers, counts = np.unique(loader.batches["epoch"], return_counts=True)
    made = dict(zip(numbers, counts, strict=True))
    return np.array(
        [made.get(e, 0) == n for e, n in zip(epochs["epoch"], epochs["batches"], strict=True)], bool
    )
