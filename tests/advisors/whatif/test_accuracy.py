"""Ranges are wider for larger changes and worse fits."""

from __future__ import annotations

import json
import math
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loaderscope
from loaderscope.advisors.schema.report_model import Range
from loaderscope.advisors.whatif import accuracy, widths
from loaderscope.advisors.whatif.accuracy import FOUR_IN_FIVE, MODEL_ERROR, ranged, ratio_error

WORKERS = frozenset({"num_workers"})


def width(mid: float, error: float = 0.0, misfit: float = 1.0, *kinds: str) -> float:
    found = ranged(mid, mid, mid, WORKERS | {*kinds}, error, misfit)
    return found.high / found.low


def test_ranges_enclose_the_change_s_own_cases_in_any_order() -> None:
    found = ranged(1.2, 1.5, 2.0, WORKERS, 0.0, 1.0)
    assert found.low < 1.2 and found.mid == 1.5 and found.high > 2.0
    assert ranged(2.0, 1.5, 1.2, WORKERS, 0.0, 1.0) == found


def test_everything_uncertain_widens() -> None:
    plain = width(2)
    assert width(4) > plain and width(0.25) == pytest.approx(width(4))
    assert width(2, error=0.1) > plain
    assert width(2, misfit=1.3) > plain and width(2, misfit=1 / 1.3) == pytest.approx(
        width(2, misfit=1.3)
    )
    assert all(width(2, 0.0, 1.0, kind) >= plain for kind in MODEL_ERROR)


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
    inside = abs(np.array(ratios) / np.mean(ratios) - 1) < FOUR_IN_FIVE * np.array(told)
    assert 0.7 < np.mean(inside) < 0.9


def test_what_is_proportional_has_no_error() -> None:
    base = np.arange(1.0, 17.0)
    assert ratio_error(base, base * 3) == pytest.approx(0)
    assert ratio_error(base[:1], base[:1]) >= 0.5


def test_a_misfit_moves_only_what_is_limited_by_something_else() -> None:
    assert accuracy.moved(1.0, 1.5) == 1.0
    assert accuracy.moved(1.05, 1.5) == pytest.approx(1.05, rel=0.02)
    # The unchanged loop was simulated too fast: the gain is larger.
    assert accuracy.moved(4.0, 1.44) == pytest.approx(4.8)
    assert accuracy.moved(4.0, 1 / 1.44) == pytest.approx(4 / 1.2)


def _learning() -> Any:
    folder = Path(loaderscope.__file__).resolve().parent / "benchmarks"
    spec = spec_from_file_location("learn_widths", folder / "learn_widths.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


learning = _learning()
STORED = json.loads(widths.FILE.read_text(encoding="utf-8"))
RESIDUALS = STORED["residuals"]


def test_a_range_is_stretched_about_its_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"all": 1.0, "crowded": 2.0, "free": 1.0, "rules": {"collate": 1.5}}
    monkeypatch.setattr(widths, "_table", lambda: table)
    plain = Range(1.0, 2.0, 8.0)
    found = widths.stretched(plain, None, crowded=True)
    assert (found.low, found.mid, found.high) == pytest.approx((0.5, 2.0, 32.0))
    found = widths.stretched(plain, "sampler", crowded=False)
    assert found == Range(1.0, 2.0, pytest.approx(8.0))
    assert widths.stretched(plain, "collate", False).low == pytest.approx(2 * 0.5**1.5)
    # However few cases spoke for it: no range becomes a point, or says nothing at all.
    monkeypatch.setattr(widths, "_table", lambda: {**table, "rules": {"collate": 100.0}})
    low = widths.stretched(Range(1.0, 2.0, 2.0), "collate", crowded=False).low
    assert low == pytest.approx(2 * 0.5**widths.WIDEST)


def test_a_sure_gain_stays_one_and_a_sure_loss_too(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"all": 3.0, "crowded": 3.0, "free": 3.0, "rules": {}}
    monkeypatch.setattr(widths, "_table", lambda: table)
    assert widths.stretched(Range(1.21, 2.0, 3.0), None, crowded=False).low == pytest.approx(1.1)
    assert widths.stretched(Range(0.3, 0.5, 0.81), None, crowded=False).high == pytest.approx(0.9)
    assert widths.stretched(Range(0.9, 1.1, 1.2), None, crowded=False).low < 0.9


def test_the_stored_table_is_that_of_the_stored_residuals() -> None:
    assert STORED["table"] == learning.learnt(RESIDUALS)


def test_ranges_learnt_from_other_cases_hold_four_in_five() -> None:
    """Each fifth of the stored cases against the table of the other four fifths."""
    inside = 0
    for part in range(5):
        table = learning.learnt(each for n, each in enumerate(RESIDUALS) if n % 5 != part)
        for each in RESIDUALS[part::5]:
            inside += each["needed"] <= widths._factor(table, each["rule"], each["crowded"])
    assert len(RESIDUALS) >= 25
    assert 0.7 <= inside / len(RESIDUALS) <= 0.92


def test_nothing_was_learnt_from_cases_that_judge() -> None:
    for each in RESIDUALS:
        drawn = each["case"].rpartition("/")[2]
        assert drawn.startswith("generated-")
        assert not drawn.startswith("generated-20261201-")
        assert math.isfinite(each["needed"])
