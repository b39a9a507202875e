"""Ranges are wider for larger changes and worse fits; predictions against what was measured."""

from __future__ import annotations

import json
import math
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loaderscope
from builders import RunBuilder
from loaderscope.advisors.schema.report_model import Range
from loaderscope.advisors.whatif import accuracy, widths
from loaderscope.advisors.whatif.accuracy import FOUR_IN_FIVE, MODEL_ERROR, ranged, ratio_error
from loaderscope.advisors.whatif.past_trials import predicted_trials
from loaderscope.cli import main

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


OWN = {"num_workers": 4, "prefetch_factor": 2}


def tuned(runs: Path, id_: str, host: str, gains: list[float], **facts: Any) -> None:
    run = RunBuilder(runs, id_)
    process = run.process(host=host)
    process.loader([])
    trials = [
        {
            "settings": {**OWN, "num_workers": 8},
            "predicted": [1.5, 1.8, 2.1],
            "measured": [0.98 * g, g, 1.02 * g],
            "outcome": "proven",
            "seconds": 9.0,
        }
        for g in gains
    ]
    told = {"own": OWN, "chosen": OWN, "decided": True, "said": "done", "trials": trials}
    told |= {"switches": [], **facts}
    (process.path / "tune0.json").write_text(json.dumps(told))


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Trials on two hosts, of which some were decided by another rank."""
    tuned(tmp_path, "20240101-000000-aaaaaa", "elsewhere", [1.3, 1.3])
    tuned(tmp_path, "20240101-000001-aaaaaa", "elsewhere", [1.3, 1.3])
    tuned(tmp_path, "20240101-000002-aaaaaa", "elsewhere", [1.3, 1.3], follows=0)
    tuned(tmp_path, "20240101-000003-aaaaaa", "other", [4.0] * 9)
    tuned(tmp_path, "20990101-000000-aaaaaa", "elsewhere", [4.0] * 9)
    return tmp_path


def test_damaged_records_and_unsure_measurements_are_left_out(history: Path) -> None:
    run = history / "20240101-000000-aaaaaa"
    (run / "p4000-0" / "tune0.json").write_text(
        '{"trials": [{"predicted": [3, 2, 1], "measured": "x"}, 7,'
        ' {"predicted": [1e-200, 1, 1e300], "measured": [1, 1, 1e300]},'
        ' {"predicted": [1.5, 2, 2.5], "measured": [0.55, 1.7, 5.4]}]}'
    )
    (run / "p4000-0" / "tune7x.json").write_text("[]")
    found = list(predicted_trials([run, history / "gone"]))
    assert [each.sure for each in found] == [False]


def test_the_list_of_accuracy(history: Path, capsys: Any, tmp_path: Path) -> None:
    assert main(["list", "--accuracy", "--runs", str(history)]) == 0
    text = capsys.readouterr().out
    assert "elsewhere" in text and "num_workers" in text
    assert main(["list", "--accuracy", "--runs", str(history), "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    both = {(row["host"], row["changed"]): row for row in rows}
    assert len(rows) == 4 and both["other", "all"]["trials"] == 9
    here = both["elsewhere", "all"]
    assert here["trials"] == 13 and here["inside_share"] == 0.0
    assert both["other", "num_workers"]["median_error"] == pytest.approx(1 - 1.8 / 4.0)
    assert main(["list", "--accuracy", "--runs", str(history), "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("host,changed,trials,median_error,")
    assert main(["list", "--accuracy", "--runs", str(history / "none")]) == 0
    assert "No trial with a prediction" in capsys.readouterr().out


def test_trials_that_were_too_short_are_counted_too(tmp_path: Path, capsys: Any) -> None:
    short = {
        "settings": {**OWN, "num_workers": 0},
        "predicted": [0.5, 0.6, 0.7],
        "measured": [0.1, 0.47, 2.0],
    }
    tuned(tmp_path, "20240101-000000-aaaaaa", "elsewhere", [], trials=[short, short])
    assert main(["list", "--accuracy", "--runs", str(tmp_path)]) == 0
    assert ": 2 trials with a prediction, too short to tell" in capsys.readouterr().out
    tuned(tmp_path, "20240101-000001-aaaaaa", "elsewhere", [1.7])
    assert main(["list", "--accuracy", "--runs", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "Left out: 2 trials with a prediction" in told and "num_workers       1" in told
