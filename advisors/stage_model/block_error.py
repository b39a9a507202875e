"""How sure a ratio of sums is, from the spread between blocks of consecutive batches.

A loop's steps come in runs of alike batches, so the uncertainty is taken between blocks, not
between batches.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

BLOCKS = 20


def block_sums(values: Floats) -> Floats:
    """The sums of up to BLOCKS blocks, of two batches or more each."""
    edges = np.linspace(0, len(values), max(1, min(BLOCKS, len(values) // 2)) + 1).astype(np.int64)[
        :-1
    ]
    return np.add.reduceat(values, edges)


def ratio(top: Floats, below: Floats) -> tuple[float, float]:
    """Σ top / Σ below over blocks, two at least, and its standard error."""
    total = max(1e-9, float(below.sum()))
    value = float(top.sum()) / total
    squares = float(np.sum((top - value * below) ** 2))
    return value, math.sqrt(len(top) / (len(top) - 1) * squares) / total
