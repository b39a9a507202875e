"""Ranges: wider for larger changes, worse fits and noisier measurements."""

from __future__ import annotations

import numpy as np
import pytest

from loaderscope.advisors.schema.report_model import Range
from loaderscope.advisors.whatif.accuracy import (
    FOUR_IN_FIVE,
    MODEL_ERROR,
    moved,
    ranged,
    ratio_error,
)

WORKERS = frozenset({"num_workers"})


def width(found: Range) -> float:
    return found.high / found.low


def test_ranges_enclose_the_change_s_own_cases_in_any_order() -> None:
    found = ranged(1.2, 1.5, 2.0, WORKERS, 0.0, 1.0)
    assert found.low < 1.2 and found.mid == 1.5 and found.high > 2.0
    assert ranged(2.0, 1.5, 1.2, WORKERS, 0.0, 1.0) == found


def test_everything_uncertain_widens() -> None:
    plain = width(ranged(2, 2, 2, WORKERS, 0.0, 1.0))
    assert width(ranged(4, 4, 4, WORKERS, 0.0, 1.0)) > plain
    assert width(ranged(0.25, 0.25, 0.25, WORKERS, 0.0, 1.0)) == pytest.approx(
        width(ranged(4, 4, 4, WORKERS, 0.0, 1.0))
    )
    assert width(ranged(2, 2, 2, WORKERS, 0.1, 1.0)) > plain
    assert width(ranged(2, 2, 2, WORKERS, 0.0, 1.3)) > plain
    assert width(ranged(2, 2, 2, WORKERS, 0.0, 1.3)) == pytest.approx(
        width(ranged(2, 2, 2, WORKERS, 0.0, 1 / 1.3))
    )
    for kind in MODEL_ERROR:
        assert width(ranged(2, 2, 2, WORKERS | {kind}, 0.0, 1.0)) >= plain


def test_the_error_of_a_ratio_is_that_of_repeated_measurements() -> None:
    rng = np.random.default_rng(0)
    ratios, told = [], []
    for _ in range(300):
        base = rng.lognormal(0, 0.3, 16)
        changed = base * rng.lognormal(0, 0.2, 16) / 2
        ratios.append(base.sum() / changed.sum())
        told.append(ratio_error(base, changed))
    spread = float(np.std(ratios) / np.mean(ratios))
    assert np.mean(told) == pytest.approx(spread, rel=0.15)
    inside = [
        abs(r / np.mean(ratios) - 1) < FOUR_IN_FIVE * t for r, t in zip(ratios, told, strict=True)
    ]
    assert 0.7 < np.mean(inside) < 0.9


def test_what_is_proportional_has_no_error() -> None:
    base = np.arange(1.0, 17.0)
    assert ratio_error(base, base * 3) == pytest.approx(0)
    assert ratio_error(base[:1], base[:1]) >= 0.5


def test_a_misfit_moves_only_what_is_limited_by_something_else() -> None:
    assert moved(1.0, 1.5) == 1.0
    assert moved(1.05, 1.5) == pytest.approx(1.05, rel=0.02)
    assert moved(4.0, 1.44) == pytest.approx(
        4.8
    )  # the unchanged loop was simulated too fast: the gain is larger
    assert moved(4.0, 1 / 1.44) == pytest.approx(4 / 1.2)
