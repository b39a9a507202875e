"""Quantiles of Student's distribution, against the printed tables (two-sided)."""

from __future__ import annotations

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
