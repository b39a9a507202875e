"""What columns hold of what was measured: a negative value stands for "not measured"."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def measured(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Those that were measured."""
    return values[values >= 0]


def mean(values: npt.NDArray[Any]) -> float | None:
    """Of those that were measured; None if none was."""
    known = measured(values)
    return float(known.mean(dtype=np.float64)) if len(known) else None


def low(values: npt.NDArray[Any]) -> int | None:
    """The smallest; None if none was measured."""
    return min(measured(values).tolist(), default=None)


def peak(values: npt.NDArray[Any]) -> int | None:
    """The largest; None if none was measured."""
    return max(measured(values).tolist(), default=None)
