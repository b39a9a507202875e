"""Quantiles of Student's distribution, against the printed tables (two-sided)."""

from __future__ import annotations

from math import pi, tan
from statistics import NormalDist

import pytest

from loaderscope.tuning.factor import quantile

# Abramowitz and Stegun, table 26.10.
FREEDOM = (1, 2, 3, 4, 5, 8, 15, 30, 120)
TABLE = {
    0.8: (3.078, 1.886, 1.638, 1.533, 1.476, 1.397, 1.341, 1.310, 1.289),
    0.99: (63.657, 9.925, 5.841, 4.604, 4.032, 3.355, 2.947, 2.750, 2.617),
}


@pytest.mark.parametrize("level", TABLE)
def test_what_the_tables_say(level: float) -> None:
    found = [quantile(level, freedom) for freedom in FREEDOM]
    assert found == pytest.approx(TABLE[level], abs=6e-4)


@pytest.mark.parametrize("level", [0.0, 0.5, 0.8, 0.95, 0.99, 0.9999])
def test_what_is_known_in_closed_form(level: float) -> None:
    assert quantile(level, 1) == pytest.approx(tan(pi / 2 * level), rel=2e-5)
    assert quantile(level, 2) == pytest.approx(level * (2 / (1 - level**2)) ** 0.5, rel=2e-5)
    normal = NormalDist().inv_cdf((1 + level) / 2)
    assert quantile(level, 10**5) == pytest.approx(normal, rel=1e-3)
