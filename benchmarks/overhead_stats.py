"""Medians of paired measurements, and how sure they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

CONFIDENCE = 0.95


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % confidence interval of the median, from the binomial distribution of ranks; None for
    fewer than 6.

    Assumes nothing about the distribution but that the values are independent: of n values, the
    number below the median is Binomial(n, 1/2), so order statistics enclose the median with a known
    probability.
    """
    count = len(values)
    rank, below = -1, 0.0
    while below + math.comb(count, rank + 1) / 2**count <= (1 - CONFIDENCE) / 2:
        rank += 1
        below += math.comb(count, rank) / 2**count
    if rank < 0:
        return None
    ordered = sorted(values)
    return ordered[rank], ordered[count - 1 - rank]


def summary(values: Sequence[float], digits: int) -> dict[str, object]:
    """Median and its confidence interval, rounded; `count` says of how many."""
    ends = interval(values)
    return {
        "median": round(median(values), digits),
        "ci95": [round(end, digits) for end in ends] if ends else None,
        "count": len(values),
    }
