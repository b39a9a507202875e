"""The verdict: is the training loop held up by its data, and how sure is that?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ...profiler.store.run.run import LoaderRun
from ..schema.report_model import Basis, Confidence, Verdict
from .block_error import Floats, block_sums, ratio
from .stages import startup_ns

# docs/causes.md, "First of all"; Kineto's TensorBoard plugin and XProf call 5 % moderate.
COMPUTE_BOUND_BELOW = 0.05
# Between XProf's "moderate" 5 % and "high" 20 %; TraceML warns at 10 %.
INPUT_BOUND_FROM = 0.10
# An epoch start worth a note of its own: docs/causes.md, "Workers started anew".
EPOCH_START_NOTED_FROM = 0.05
# Of a loop that free loading would make this much faster at most, it is said how little that is.
LITTLE_TO_GAIN = 1.2
# Of what is not lost to loading, the most that recording can have taken.
MOST_RECORDING = 0.9
# Fewer steady batches make no verdict: the run was too short.
MINIMUM_BATCHES = 20
# Below this many steady batches a verdict is never called "high" confidence (five batches a block).
HIGH_CONFIDENCE_BATCHES = 100
# So many batches may be waiting for the device at once; of more than these it is not timed any
# more.
MOST_AHEAD = 360


@dataclass(frozen=True)
class Lost:
    """Per batch kept in detail, in ns (0 where unknown): what was `lost` to loading, of which
    `step`."""

    lost: Floats
    step: Floats
    known: npt.NDArray[np.bool_]  # wait and compute both measured
    first: npt.NDArray[np.bool_]
    kind: Literal["stall", "wait"]


def lost_time(loader: LoaderRun) -> Lost:
    """What loading cost each batch: stall where device events were measured, else wait. The last
    batches, which the device has yet to reach, do not count."""
    batches = loader.batches
    wait, compute, stall = batches["wait_ns"], batches["compute_ns"], batches["stall_ns"]
    by_device = bool(np.any(stall >= 0))
    lost = np.where(stall >= 0, np.minimum(stall, wait), wait) if by_device else wait
    reached = np.ones(len(stall), np.bool_)
    if by_device:
        last = int(np.flatnonzero(stall >= 0)[-1])
        reached[last + 1 :] = len(stall) - last > MOST_AHEAD
    return Lost(
        lost=np.where(reached, lost.clip(0), 0).astype(np.float64),
        step=np.where(reached, wait.clip(0) + compute.clip(0), 0).astype(np.float64),
        known=(wait >= 0) & (compute >= 0) & reached,
        first=first_of_epoch(batches["epoch"]),
        kind="stall" if by_device else "wait",
    )


def first_of_epoch(epoch: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """A flag a batch: nothing of its epoch came before it. Epochs may interleave."""
    first = np.zeros(len(epoch), dtype=np.bool_)
    if not len(epoch):
        return first
    first[0] = True
    changed = epoch[1:] != epoch[:-1]
    if np.all(epoch[1:] >= epoch[:-1]):
        first[1:] = changed
    else:
        first[:] = False
        first[np.unique(epoch, return_index=True)[1]] = True
    return first


def headroom(loader: LoaderRun, lost: Lost) -> float | None:
    """Speed-up of the whole loop if loading were free: Σ step / (Σ step - Σ lost); None where
    nothing is known.

    Time inside `iter()` (starting workers) is lost to loading too and counts in both sums: this is
    the upper bound for all advice. Folded batches count in full.
    """
    step, gone = float(lost.step.sum()), float(lost.lost.sum())
    fold = loader.folded.columns
    folded_wait = fold["wait_ns"].total if "wait_ns" in fold else 0
    folded_stall = fold["stall_ns"].total if "stall_ns" in fold else folded_wait
    folded_compute = fold["compute_ns"].total if "compute_ns" in fold else 0
    before = iter_ns(loader, lost)
    step += folded_wait + folded_compute + before
    gone += folded_stall + before
    # What recording cost comes between a batch's hand-over and the loop's own work, and is no part
    # of the loop. (It was timed with some noise: a loop that does nothing else is left a part of
    # it.)
    own = loader.batches["own_ns"]
    recording = float(own.sum(where=own > 0, dtype=np.float64)) + (
        fold["own_ns"].total if "own_ns" in fold else 0
    )
    step -= min(recording, MOST_RECORDING * (step - gone))
    left = step - gone
    return step / left if left > 0 and step > 0 else None


def iter_ns(loader: LoaderRun, lost: Lost) -> float:
    """Time inside `iter()`, all epochs: startup less the first batch's wait (unknown, so not
    subtracted, if folded)."""
    total = float(startup_ns(loader).clip(0).sum(dtype=np.float64))
    waited = float(loader.batches["wait_ns"][lost.first].clip(0).sum(dtype=np.float64))
    return max(0.0, total - waited) if not loader.folded.records else 0.0


def epoch_start_share(loader: LoaderRun, lost: Lost) -> float | None:
    """Part of all time lost at the starts of epochs after the first, which training repeats; None
    with one epoch."""
    starts = np.flatnonzero(lost.first)
    total = float(lost.step.sum())
    if len(starts) < 2 or total <= 0:
        return None
    startup = startup_ns(loader)
    gone = float(lost.lost[starts[1:]].sum())
    if len(startup) > 1:
        in_iter = float(startup[1:].clip(0).sum(dtype=np.float64)) - float(
            loader.batches["wait_ns"][starts[1:]].clip(0).sum(dtype=np.float64)
        )
        if in_iter > 0 and not loader.folded.records:
            gone += in_iter
            total += in_iter
    return min(1.0, gone / total)


def verdict(loader: LoaderRun, lost: Lost) -> tuple[Verdict, Basis]:
    """The verdict and what it rests on: the steady batches still kept in detail."""
    steady = lost.known & ~lost.first
    starts = epoch_start_share(loader, lost)
    count = int(np.count_nonzero(steady))
    batches = loader.count
    if batches < MINIMUM_BATCHES or count < MINIMUM_BATCHES // 2:
        return "too-short", Basis(
            _too_short(loader, batches, count), "low", count, None, None, None, starts, lost.kind
        )
    gone, step = lost.lost[steady], lost.step[steady]
    share, low, high = share_with_range(gone, step)
    found = _place(share)
    by_starts = found != "input-bound" and starts is not None and starts >= INPUT_BOUND_FROM
    if by_starts:
        found = "input-bound"
    confidence = _confidence(count, _place(low) == _place(high))
    little = (headroom(loader, lost) or math.inf) < LITTLE_TO_GAIN
    sentence = _sentence(found, share, starts if by_starts else None, lost.kind, little)
    return found, Basis(sentence, confidence, count, share, low, high, starts, lost.kind)


def share_with_range(gone: Floats, step: Floats) -> tuple[float, float, float]:
    """Σ gone / Σ step, and a 95 % range from the spread between blocks of consecutive batches
    (ratio estimator)."""
    if float(step.sum()) <= 0:
        return 0.0, 0.0, 0.0
    top, below = block_sums(gone), block_sums(step)
    if len(top) < 2:
        return float(gone.sum()) / float(step.sum()), 0.0, 1.0
    share, error = ratio(top, below)
    return share, max(0.0, share - 2 * error), min(1.0, share + 2 * error)


def _place(share: float) -> Verdict:
    if share >= INPUT_BOUND_FROM:
        return "input-bound"
    return "compute-bound" if share <= COMPUTE_BOUND_BELOW else "balanced"


def _confidence(count: int, clear: bool) -> Confidence:
    if not clear:
        return "low"
    return "high" if count >= HIGH_CONFIDENCE_BATCHES else "medium"


def _sentence(
    found: Verdict, share: float, starts: float | None, kind: Literal["stall", "wait"], little: bool
) -> str:
    who = (
        "The device stood idle, waiting for data,"
        if kind == "stall"
        else "The training loop waited for data"
    )
    if starts is not None:
        return (
            f"Epoch starts cost {starts * 100:.0f} % of the time: each begins with a long wait "
            "for its first batch."
        )
    if found == "input-bound":
        gain = (
            "faster loading would gain little."
            if little
            else "faster loading would speed up training."
        )
        return f"{who} {share * 100:.0f} % of the time: {gain}"
    if found == "compute-bound":
        return f"{who} only {_small(share)} of the time: loading is not what limits training."
    return (
        f"{who} {share * 100:.0f} % of the time: loading costs a little, and there is little to "
        "gain."
    )


def _small(share: float) -> str:
    return f"{share * 100:.0f} %" if share >= 0.0095 else f"{share * 100:.1f} %"


def _too_short(loader: LoaderRun, batches: int, steady: int) -> str:
    if not batches:
        return "No batches were recorded: iterate over the watched loader, then ask again."
    if batches < MINIMUM_BATCHES:
        plural = "batch was" if batches == 1 else "batches were"
        return (
            f"Only {batches} {plural} recorded: let it run for at least {MINIMUM_BATCHES}, better "
            "some hundred."
        )
    return (
        f"Only {steady} steady batches were recorded (the first of each epoch is set apart): use "
        "longer epochs for the measurement."
    )
