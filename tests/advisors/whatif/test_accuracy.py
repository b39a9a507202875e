"""Ranges are wider for larger changes and worse fits."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import loaderscope
from loaderscope.advisors.schema.report_model import Range
from loaderscope.advisors.whatif import accuracy

STORED = Path(loaderscope.__file__).parent / "benchmarks/residuals.json"
RESIDUALS = json.loads(STORED.read_text(encoding="utf-8"))
WORKERS = frozenset({"num_workers"})


def width(mid: float, error: float = 0.0, misfit: float = 1.0, *kinds: str) -> float:
    found = accuracy.ranged(mid, mid, mid, WORKERS | {*kinds}, error, misfit)
    return found.high / found.low


def test_ranges_enclose_the_change_s_own_cases_in_any_order() -> None:
    found = accuracy.ranged(1.2, 1.5, 2.0, WORKERS, 0.0, 1.0)
    assert found.low < 1.2 and found.mid == 1.5 and found.high > 2.0
    assert accuracy.ranged(2.0, 1.5, 1.2, WORKERS, 0.0, 1.0) == found


def test_everything_uncertain_widens() -> None:
    plain, far, misfit = width(2), width(4), width(2, misfit=1.3)
    assert min(far, misfit, width(2, error=0.1)) > plain
    assert (width(0.25), width(2, misfit=1 / 1.3)) == pytest.approx((far, misfit))
    assert all(width(2, 0.0, 1.0, kind) >= plain for kind in accuracy.MODEL_ERROR)


def test_the_error_of_a_ratio_is_that_of_repeated_measurements() -> None:
    rng = np.random.default_rng(0)
    ratios, told = [], []
    for _ in range(300):
        base = rng.lognormal(0, 0.3, 16)
        changed = base * rng.lognormal(0, 0.2, 16) / 2
        ratios.append(base.sum() / changed.sum())
        told.append(accuracy.ratio_error(base, changed))
    spread = float(np.std(ratios) / np.mean(ratios))
    assert np.mean(told) == pytest.approx(spread, rel=0.15)
    inside = abs(np.array(ratios) / np.mean(ratios) - 1) < accuracy.FOUR_IN_FIVE * np.array(told)
    assert 0.7 < np.mean(inside) < 0.9


def test_what_is_proportional_has_no_error() -> None:
    base = np.arange(1.0, 17.0)
    assert accuracy.ratio_error(base, base * 3) == pytest.approx(0)
    assert accuracy.ratio_error(base[:1], base[:1]) >= 0.5


def test_a_misfit_moves_only_what_is_limited_by_something_else() -> None:
    assert accuracy.moved(1.0, 1.5) == 1.0
    assert accuracy.moved(1.05, 1.5) == pytest.approx(1.05, rel=0.02)
    # The unchanged loop was simulated too fast: the gain is larger.
    assert accuracy.moved(4.0, 1.44) == pytest.approx(4.8)
    assert accuracy.moved(4.0, 1 / 1.44) == pytest.approx(4 / 1.2)


def test_a_range_is_narrowed_about_its_middle_and_a_sure_gain_stays_one() -> None:
    found = accuracy.narrowed(Range(1.01, 2.0, 8.0))
    assert found.mid == 2.0
    assert math.log(2 / found.low) == pytest.approx(accuracy.NARROWED * math.log(2 / 1.01))
    assert math.log(found.high / 2) == pytest.approx(accuracy.NARROWED * math.log(4))
    assert accuracy.narrowed(Range(0.3, 0.5, 0.99)).high < 1.0
    assert accuracy.narrowed(Range(0.9, 1.1, 1.2)).low < 1.0


def test_narrowed_ranges_hold_four_in_five_of_the_stored_cases_none_of_which_judges() -> None:
    assert len(RESIDUALS) >= 25
    needed = [each["needed"] for each in RESIDUALS]
    assert all(map(math.isfinite, needed))
    assert 0.78 <= np.mean([each <= accuracy.NARROWED for each in needed]) <= 0.86
    drawn = [each["case"].rpartition("/")[2] for each in RESIDUALS]
    assert all(name.startswith("generated-") for name in drawn)
    assert not any(name.startswith("generated-20261201-") for name in drawn)
