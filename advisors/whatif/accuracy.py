"""How far off predictions may be: the model's error for each kind of change, and the range.

`benchmarks/prediction.py --calibrate` measures and prints MODEL_ERROR, and
`benchmarks/known_residuals.py` what part of a range is enough (NARROWED).
"""

import math

from ...profiler.base.arrays import Floats
from ..schema.report_model import Range
from ..stage_model.block_error import ratio

# Kind of change → (floor, slope) of |ln(measured / predicted)|: four predictions in five are within
# floor + slope * |ln predicted|. Kinds that change together add up as independent errors do.
MODEL_ERROR: dict[str, tuple[float, float]] = {
    "to_workers": (0.12, 0.15),
    "from_workers": (0.10, 0.15),
    "num_workers": (0.08, 0.15),
    "prefetch_factor": (0.08, 0.20),
    "in_order": (0.08, 0.25),
    "pin_memory": (0.05, 0.35),
    "persistent_workers": (0.04, 0.20),
    "multiprocessing_context": (0.06, 0.35),
    "stage": (0.03, 0.15),
    "cpus": (0.06, 0.20),
    "together": (0.03, 0.15),
    # Main computes with several threads, and the number of workers changes. On busy cores each
    # parallel region may wait for a preempted thread, which is not simulated (docs/causes.md,
    # "Waiting for a core").
    "intra_op": (0.30, 0.30),
    # Handing batches over is most of a step, before or after the change: the cost of wake-ups and
    # of descriptors sent between processes differs between machines, and from second to second.
    "hand-over": (0.30, 0.10),
    # Workers share cores with other programs, as the scheduler decides (SHARED_CORE in predict.py).
    "others": (0.20, 0.05),
}
# A loop that gains more than this with free loading hardly computes. With short batches, caches and
# cores are free for its own work, which may then take as little as this part of its time.
HARDLY_COMPUTES, LEFT_AT_LEAST = 5.0, 0.6
# Standard deviations that hold four in five of a normal distribution.
FOUR_IN_FIVE = 1.28
# If the simulation of the unchanged loop is off by ln x, that of the changed loop may not be, as
# something else limits it. Its middle is moved by half of ln x, and by less for factors below
# FULL_MISFIT, where the limit is likely the same.
MISFIT_SHARE = 0.5
FULL_MISFIT = math.log(2)
WIDEST = math.log(20)
# Of a range (as a logarithm on either side of its middle), the part that held the truth in four of
# five generated cases whose first advice was executed and timed: benchmarks/residuals.json.
NARROWED = 0.6
# A person changes more than the line that is named. Of the gains of 56 steps done by hand (eight
# rounds of docs/casebook.md), 88 % lay below the upper end to this power, and the median this far
# from the middle to it, as a logarithm.
BY_HAND_POWER, BY_HAND_TOWARDS = 1.2, 0.3


def ratio_error(base: Floats, changed: Floats) -> float:
    """Relative standard error of Σ base / Σ changed, from the spread between blocks of the same
    batches."""
    if len(base) < 2:
        return 0.5
    value, error = ratio(base, changed)
    return error / max(1e-9, value)


def moved(simulated: float, misfit: float, share: float = MISFIT_SHARE) -> float:
    """The simulated factor, corrected for the error of the unchanged loop's simulation."""
    return simulated * math.exp(_off(simulated, misfit, share))


def less_sure(free: float) -> float:
    """The upper bound of a gain, where free loading would bring this factor by the measured
    times."""
    return free / LEFT_AT_LEAST if free > HARDLY_COMPUTES else free


def narrowed(found: Range) -> Range:
    """The range, as narrow as measured cases allow."""
    mid = max(1e-9, found.mid)
    low, high = (mid * (max(1e-9, end) / mid) ** NARROWED for end in (found.low, found.high))
    return Range(low, found.mid, high)


def by_hand(found: Range) -> Range:
    """The range of a change that is left to a person."""
    high = max(found.high, found.high**BY_HAND_POWER)
    return Range(found.low, found.mid * (high / found.mid) ** BY_HAND_TOWARDS, high)


def _off(factor: float, misfit: float, share: float = MISFIT_SHARE) -> float:
    same = abs(math.log(max(1e-9, factor))) / FULL_MISFIT
    return share * math.log(misfit) * min(1.0, same)


def ranged(
    low: float, mid: float, high: float, kinds: frozenset[str], relative_error: float, misfit: float
) -> Range:
    """A range around `mid` (and around `low` and `high`, the change's own worst and best case).

    `relative_error` is of the measurements; `misfit` the factor by which the unchanged loop,
    simulated, is faster than it was.
    """
    squares = (FOUR_IN_FIVE * relative_error) ** 2 + _off(mid, misfit) ** 2
    for kind in kinds:
        floor, slope = MODEL_ERROR[kind]
        squares += (floor + slope * abs(math.log(max(1e-9, mid)))) ** 2
    half = min(WIDEST, math.sqrt(squares))
    low, high = min(low, mid, high), max(low, mid, high)
    return Range(low * math.exp(-half), mid, high * math.exp(half))
