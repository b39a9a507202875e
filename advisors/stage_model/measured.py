"""What columns hold of what was measured: a negative value stands for "not measured"."""

import numpy as np

from ...profiler.base.arrays import Array


def measured(values: Array) -> Array:
    """Those that were measured."""
    return values[values >= 0]


def mean(values: Array) -> float | None:
    """Of those that were measured; None if none was."""
    known = measured(values)
    return float(known.mean(dtype=np.float64)) if len(known) else None


def low(values: Array) -> int | None:
    """The smallest; None if none was measured."""
    return min(measured(values).tolist(), default=None)


def peak(values: Array) -> int | None:
    """The largest; None if none was measured."""
    return max(measured(values).tolist(), default=None)
