"""How sure a ratio of sums is, from the spread between blocks of consecutive batches.

A loop's steps come in runs of alike batches, so the uncertainty is taken between blocks, not
between batches.
"""

import math

import numpy as np

from ...profiler.base.arrays import Floats

BLOCKS = 20


def block_sums(values: Floats, most: int = BLOCKS, least: int = 2) -> Floats:
    """The sums of so many blocks at most, of `least` batches or more each."""
    blocks = max(1, min(most, len(values) // least))
    edges = np.linspace(0, len(values), blocks + 1).astype(np.int64)
    return np.add.reduceat(values, edges[:-1])


def ratio(top: Floats, below: Floats) -> tuple[float, float]:
    """Σ top / Σ below over blocks, two at least, and its standard error."""
    total = max(1e-9, float(below.sum()))
    value = float(top.sum()) / total
    squares = float(np.sum((top - value * below) ** 2))
    return value, math.sqrt(len(top) / (len(top) - 1) * squares) / total
