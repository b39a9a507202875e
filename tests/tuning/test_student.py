"""Quantiles of Student's distribution, against the printed tables (two-sided)."""

from __future__ import annotations

from math import pi, tan
from statistics import NormalDist

import pytest

from loaderscope.tuning.student import quantile

# Abramowitz and Stegun, table 26.10.
TABLE = {
    0.8: {
        1: 3.078,
        2: 1.886,
        3: 1.638,
        4: 1.533,
        5: 1.476,
        8: 1.397,
        15: 1.341,
        30: 1.310,
        120: 1.289,
    },
    0.99: {
        1: 63.657,
        2: 9.925,
        3: 5.841,
        4: 4.604,
        5: 4.032,
        8: 3.355,
        15: 2.947,
        30: 2.750,
        120: 2.617,
    },
}


@pytest.mark.parametrize(
    ("level", "freedom"), [(level, n) for level, row in TABLE.items() for n in row]
)
def test_what_the_tables_say(level: float, freedom: int) -> None:
    assert quantile(level, freedom) == pytest.approx(TABLE[level][freedom], abs=6e-4)


@pytest.mark.parametrize("level", [0.0, 0.5, 0.8, 0.95, 0.99, 0.9999])
def test_what_is_known_in_closed_form(level: float) -> None:
    assert quantile(level, 1) == pytest.approx(tan(pi / 2 * level), rel=2e-5)
    assert quantile(level, 2) == pytest.approx(level * (2 / (1 - level**2)) ** 0.5, rel=2e-5)
    normal = NormalDist().inv_cdf((1 + level) / 2)
    assert quantile(level, 10**5) == pytest.approx(normal, rel=1e-3)
