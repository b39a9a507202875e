"""Student's distribution."""

from __future__ import annotations

from functools import cache
from math import pi, sqrt, tan

import numpy as np

GRID = 10_001  # angles: quantiles to five digits


@cache
def quantile(level: float, freedom: int) -> float:
    """The t that a value of Student's distribution lies within, either way, with this probability.

    With t = sqrt(freedom) tan(angle), the density is cos(angle) ** (freedom - 1), which is summed
    up here (Abramowitz and Stegun, 26.7.1).
    """
    angles = np.linspace(0, pi / 2, GRID)
    density = np.cos(angles) ** (freedom - 1)
    within = np.append(0.0, np.cumsum(density[1:] + density[:-1]))
    return sqrt(freedom) * tan(float(np.interp(level, within / within[-1], angles)))
