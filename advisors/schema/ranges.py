"""A figure that is not known exactly."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Range:
    """A factor on batches per second: the true value should lie in [low, high] four times in
    five."""

    low: float
    mid: float
    high: float
