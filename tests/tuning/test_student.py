"""Quantiles of Student's distribution, against the printed tables (two-sided)."""

from __future__ import annotations

import pytest

from loaderscope.tuning.student import quantile, within

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


@pytest.mark.parametrize("freedom", [1, 2, 3, 7, 52, 1001])
def test_a_quantile_is_within_itself_so_often(freedom: int) -> None:
    for level in (0.0, 0.5, 0.8, 0.95, 0.99, 0.9999):
        assert within(quantile(level, freedom), freedom) == pytest.approx(level, abs=1e-12)


@pytest.mark.parametrize(("level", "freedom"), [(1.0, 3), (-0.1, 3), (0.9, 0)])
def test_what_is_no_level_or_no_freedom_is_refused(level: float, freedom: int) -> None:
    with pytest.raises(ValueError, match="no quantile"):
        quantile(level, freedom)
