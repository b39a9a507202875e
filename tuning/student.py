"""Student's distribution, for whole degrees of freedom."""

from __future__ import annotations

from functools import cache
from math import atan, cos, pi, sin, sqrt, tan

HALVINGS = 60  # of a quarter of a circle: beyond what a float tells apart


@cache
def quantile(level: float, freedom: int) -> float:
    """The t that a value of Student's distribution stays within, either way, with this probability.

    `within` grows with the angle arctan(t / sqrt(freedom)), so halving finds it. Raises ValueError
    for a level that is no probability below 1, or for less than one degree of freedom.
    """
    if not 0 <= level < 1 or freedom < 1:
        raise ValueError(f"no quantile of Student's distribution: level {level}, freedom {freedom}")
    low, high = 0.0, pi / 2
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < level else (low, middle)
    return sqrt(freedom) * tan(low)


def within(t: float, freedom: int) -> float:
    """The probability of a value between -t and t."""
    return _within(atan(t / sqrt(freedom)), freedom)


def _within(angle: float, freedom: int) -> float:
    """Abramowitz and Stegun, 26.7.3 and 26.7.4: the sum is finite."""
    odd = freedom % 2
    term, total = (cos(angle) if odd else 1.0), 0.0
    for number in range(1, freedom // 2 + 1):
        total += term
        term *= cos(angle) ** 2 * (
            2 * number / (2 * number + 1) if odd else (2 * number - 1) / (2 * number)
        )
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total
