"""The verdict: is the training loop held up by its data, and how sure is that?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ...profiler.base.arrays import Floats, Mask
from ...profiler.base.schema import LATE_ROWS
from ...profiler.store.run.epoch_ends import one_each
from ...profiler.store.run.run import LoaderRun
from ..schema.report_model import Basis, Confidence, Verdict
from .block_error import block_sums, ratio
from .stages import startup_ns, total

# docs/causes.md, "First of all"; Kineto's TensorBoard plugin and XProf call 5 % moderate.
COMPUTE_BOUND_BELOW = 0.05
# Between XProf's "moderate" 5 % and "high" 20 %; TraceML warns at 10 %.
INPUT_BOUND_FROM = 0.10
# An epoch start worth a note of its own: docs/causes.md, "Workers started anew".
EPOCH_START_NOTED_FROM = 0.05
# Below this gain from free loading, a loop that waits is not said to be bound by its input.
LITTLE_TO_GAIN = 1.2
# Of what is not lost to loading, the most that recording can have taken.
MOST_RECORDING = 0.9
# With fewer steady batches there is no verdict: the run was too short.
MINIMUM_BATCHES = 20
# But where each takes so long, a few that say the same do: in all, ns.
FEWEST_BATCHES, LONG_NS = 4, 5e9
# Below this many steady batches a verdict is never called "high" confidence (five batches a block).
HIGH_CONFIDENCE_BATCHES = 100


@dataclass(frozen=True)
class Lost:
    """Per batch kept in detail, in ns (0 if unknown): what was `lost` to loading, of which
    `step`."""

    lost: Floats
    step: Floats
    known: Mask  # wait and compute both measured
    first: Mask
    kind: Literal["stall", "wait"]


def lost_time(loader: LoaderRun) -> Lost:
    """What loading cost each batch: stall if device events were measured, else wait. The last
    batches, which the device has yet to reach, do not count."""
    batches = loader.batches
    wait, compute, stall = batches["wait_ns"], batches["compute_ns"], batches["stall_ns"]
    timed = np.flatnonzero(stall >= 0)
    reached = np.ones(len(stall), np.bool_)
    if len(timed):
        reached[timed[-1] + 1 :] = len(stall) - timed[-1] > LATE_ROWS
    lost = np.where(stall >= 0, np.minimum(stall, wait), wait)
    return Lost(
        lost=np.where(reached, lost.clip(0), 0).astype(np.float64),
        step=np.where(reached, wait.clip(0) + compute.clip(0), 0).astype(np.float64),
        known=(wait >= 0) & (compute >= 0) & reached,
        first=first_of_epoch(batches["epoch"]),
        kind="stall" if len(timed) else "wait",
    )


def first_of_epoch(epoch: npt.NDArray[np.int32]) -> Mask:
    """A flag per batch: nothing of its epoch came before it. Epochs may interleave."""
    first = np.zeros(len(epoch), dtype=np.bool_)
    first[np.unique(epoch, return_index=True)[1]] = True
    return first


def headroom(loader: LoaderRun, lost: Lost) -> float | None:
    """Speed-up of the whole loop if loading were free: Σ step / (Σ step - Σ lost); None if nothing
    is known.

    Time inside `iter()` (starting workers) is lost to loading too and counts in both sums: this is
    the upper bound for all advice.
    """
    before = iter_ns(loader, lost)
    step, gone = float(lost.step.sum()) + before, float(lost.lost.sum()) + before
    # What recording cost comes between a batch's hand-over and the loop's own work, and is no part
    # of the loop. It was timed with some noise: a loop that does nothing else is left a part of it.
    step -= min(total(loader, "own_ns"), MOST_RECORDING * (step - gone))
    left = step - gone
    return step / left if left > 0 and step > 0 else None


def iter_ns(loader: LoaderRun, lost: Lost, since: int = 0) -> float:
    """Time inside `iter()` of the epochs from `since` on: startup less the first batch's wait
    (unknown, so 0, if older batches are left out)."""
    starts = np.flatnonzero(lost.first)[since:]
    spent = startup_ns(loader)[since:].clip(0).sum(dtype=np.float64)
    waited = loader.batches["wait_ns"][starts].clip(0).sum(dtype=np.float64)
    return 0.0 if loader.older else max(0.0, float(spent - waited))


def epoch_start_share(loader: LoaderRun, lost: Lost) -> float | None:
    """Part of all time lost at the starts of epochs after the first, which training repeats; None
    with one epoch."""
    starts, step = np.flatnonzero(lost.first), float(lost.step.sum())
    if len(starts) < 2 or step <= 0:
        return None
    in_iter = iter_ns(loader, lost, since=1)
    return min(1.0, (float(lost.lost[starts[1:]].sum()) + in_iter) / (step + in_iter))


def long_enough(batches: int, took_ns: float) -> bool:
    """Whether batches that are few took so long, together, that they say as much as many."""
    return batches >= FEWEST_BATCHES and took_ns >= LONG_NS


def _all_alike(gone: Floats, step: Floats, num_workers: int) -> bool:
    """Whether few batches make a verdict: they took long, and each says the same. Workers that
    start together finish together: of such a round, only the first batch is waited for."""
    size = max(1, num_workers)
    rounds = len(step) // size
    if not long_enough(rounds, float(step.sum())) or float(step.min()) <= 0:
        return False
    whole = slice(0, rounds * size)
    gone, step = gone[whole].reshape(rounds, size), step[whole].reshape(rounds, size)
    return len({_place(float(share)) for share in gone.sum(axis=1) / step.sum(axis=1)}) == 1


def verdict(loader: LoaderRun, lost: Lost) -> tuple[Verdict, Basis]:
    """The verdict and what it rests on: the steady batches still kept in detail."""
    steady = lost.known & (~lost.first | one_each(loader.epochs, loader.batches))
    starts = epoch_start_share(loader, lost)
    count = int(np.count_nonzero(steady))
    few = loader.count < MINIMUM_BATCHES or count < MINIMUM_BATCHES // 2
    if few and not _all_alike(lost.lost[steady], lost.step[steady], loader.num_workers):
        sentence = _too_short(loader.count, count)
        return "too-short", Basis(sentence, "low", count, None, None, None, starts, lost.kind)
    share, low, high = share_with_range(lost.lost[steady], lost.step[steady])
    found = _place(share)
    confidence: Confidence = "high" if count >= HIGH_CONFIDENCE_BATCHES else "medium"
    if few or _place(low) != _place(high):
        confidence = "low"
    if found == "input-bound" and (headroom(loader, lost) or math.inf) < LITTLE_TO_GAIN:
        found = "balanced"
    sentence = _sentence(found, share, lost.kind)
    if found != "input-bound" and starts is not None and starts >= INPUT_BOUND_FROM:
        found = "input-bound"
        sentence = (
            f"Epoch starts cost {starts * 100:.0f} % of the time: each begins with a long wait for "
            "its first batch."
        )
    return found, Basis(sentence, confidence, count, share, low, high, starts, lost.kind)


def share_with_range(gone: Floats, step: Floats) -> tuple[float, float, float]:
    """Σ gone / Σ step, and a 95 % range from the spread between blocks of consecutive batches
    (ratio estimator)."""
    share, error = ratio(block_sums(gone), block_sums(step))
    return share, max(0.0, share - 2 * error), min(1.0, share + 2 * error)


def _place(share: float) -> Verdict:
    if share >= INPUT_BOUND_FROM:
        return "input-bound"
    return "compute-bound" if share <= COMPUTE_BOUND_BELOW else "balanced"


def _sentence(found: Verdict, share: float, kind: Literal["stall", "wait"]) -> str:
    waits = (
        "The device stood idle, waiting for data,"
        if kind == "stall"
        else "The training loop waited for data"
    )
    percent = f"{share * 100:.{0 if found != 'compute-bound' or share >= 0.0095 else 1}f} %"
    if found == "compute-bound":
        return f"{waits} only {percent} of the time: loading is not what limits training."
    end = "loading costs a little, and there is little to gain."
    if found == "input-bound":
        end = "faster loading would speed up training."
    return f"{waits} {percent} of the time: {end}"


def _too_short(batches: int, steady: int) -> str:
    if not batches:
        return f"No batch has been recorded so far: at least {MINIMUM_BATCHES} are needed."
    if batches < MINIMUM_BATCHES:
        plural = "batch was" if batches == 1 else "batches were"
        return (
            f"Only {batches} {plural} recorded: let it run for at least {MINIMUM_BATCHES}, better "
            "some hundred."
        )
    return (
        f"Only {steady} steady batches were recorded (the first of each epoch does not count): use "
        "longer epochs for the measurement."
    )
