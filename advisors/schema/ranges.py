"""A figure with its range."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Range:
    """A factor on batches per second: [low, high] is the 80 % range of the true value."""

    low: float
    mid: float
    high: float
