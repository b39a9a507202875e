"""What predictions learn from trials: the model's scale and the width of its ranges; nothing while
there are few."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders import RunBuilder
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.schema.report_model import Range
from loaderscope.advisors.whatif import past_trials
from loaderscope.advisors.whatif.past_trials import (
    Correction,
    Outcome,
    correction_for,
    correction_from,
    outcomes_of,
)
from loaderscope.cli import main
from loaderscope.profiler.base.host import host_name
from loaderscope.profiler.store.run.run_reader import open_run
from report_samples import full_run

HALF = 0.2  # of the model's ranges, in logarithm


def around(middle: float, half: float) -> Range:
    return Range(math.exp(middle - half), math.exp(middle), math.exp(middle + half))


def outcomes(
    count: int, scale: float, spread: float, seed: int = 0, known: Correction | None = None
) -> list[Outcome]:
    """Trials of a machine on which gains are this power of what the model says, and off by
    `spread`."""
    random = np.random.default_rng(seed)
    found = []
    for predicted in random.uniform(0.05, 1.0, count):
        shown = around(predicted, HALF)
        if known is not None:
            shown = known.applied(shown)
        measured = around(scale * predicted + spread * random.normal(), 0.03)
        corrected = (known.scale, known.width) if known is not None else ()
        found.append(Outcome("run", "host", ("num_workers",), shown, measured, *corrected))
    return found


def errors(held_out: list[Outcome], correction: Correction | None) -> tuple[float, float]:
    """(mean error of the middle, share inside) of predictions that were not learned from."""
    shown = [
        correction.applied(each.predicted) if correction else each.predicted for each in held_out
    ]
    off = [
        abs(math.log(p.mid / each.measured.mid)) for p, each in zip(shown, held_out, strict=True)
    ]
    inside = [p.low <= each.measured.mid <= p.high for p, each in zip(shown, held_out, strict=True)]
    return float(np.mean(off)), float(np.mean(inside))


@pytest.mark.parametrize("count", [8, 30])
def test_a_model_that_promises_too_much_is_corrected(count: int) -> None:
    held_out = outcomes(400, scale=0.6, spread=0.08, seed=9)
    before, after = (
        errors(held_out, None),
        errors(held_out, correction_from(outcomes(count, 0.6, 0.08))),
    )
    assert after[0] < 0.65 * before[0]
    assert after[1] > before[1]


@pytest.mark.parametrize("spread", [0.04, 0.35])
def test_ranges_become_as_wide_as_four_in_five_need(spread: float) -> None:
    held_out = outcomes(400, scale=1.0, spread=spread, seed=9)
    before, after = (
        errors(held_out, None),
        errors(held_out, correction_from(outcomes(40, 1.0, spread))),
    )
    assert abs(after[1] - 0.8) < abs(before[1] - 0.8)
    assert 0.7 < after[1] <= 1.0


def test_a_model_that_is_right_stays_so() -> None:
    held_out = outcomes(400, scale=1.0, spread=HALF / 1.28, seed=9)
    for count in (3, 10, 40):
        found = [correction_from(outcomes(count, 1.0, HALF / 1.28, seed)) for seed in range(60)]
        known = [each for each in found if each is not None]
        assert (
            np.mean([errors(held_out, each)[0] for each in known])
            < 1.06 * errors(held_out, None)[0]
        )
        assert 0.75 < np.mean([errors(held_out, each)[1] for each in known]) < 0.9
        assert 0.97 < np.mean([each.scale for each in known]) < 1.03


def test_few_trials_say_little_and_fewer_nothing() -> None:
    few, many = (correction_from(outcomes(count, 0.4, 0.02)) for count in (3, 60))
    assert few is not None and many is not None and many.scale < few.scale < 1.0
    assert correction_from(outcomes(2, 0.4, 0.02)) is None


def test_what_was_corrected_already_is_not_corrected_again() -> None:
    first = correction_from(outcomes(40, 0.6, 0.1))
    assert first is not None
    again = correction_from(outcomes(40, 0.6, 0.1, known=first))
    assert again is not None
    assert (again.scale, again.width) == (pytest.approx(first.scale), pytest.approx(first.width))


def test_no_change_stays_no_change() -> None:
    assert Correction(9, 0.5, 2.0).applied(Range(1.0, 1.0, 1.0)) == Range(1.0, 1.0, 1.0)
    halved = Correction(9, 0.5, 2.0).applied(Range(1.0, 4.0, 8.0))
    assert (halved.low, halved.mid, halved.high) == (
        pytest.approx(1 / 8),
        pytest.approx(2.0),
        pytest.approx(8.0),
    )


OWN = {"num_workers": 4, "prefetch_factor": 2}


def tuned(runs: Path, id_: str, host: str, gains: list[float], **facts: Any) -> None:
    run = RunBuilder(runs, id_)
    process = run.process(host=host)
    process.loader([])
    trials = [
        {"settings": {**OWN, "num_workers": 8}, "predicted": [1.5, 1.8, 2.1], "measured": [0.98 * g, g, 1.02 * g],
         "outcome": "proven", "seconds": 9.0}
        for g in gains
    ]  # fmt: skip
    told = {
        "own": OWN,
        "chosen": OWN,
        "decided": True,
        "said": "done",
        "trials": trials,
        "switches": [],
        **facts,
    }
    (process.path / "tune0.json").write_text(json.dumps(told))


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Of this run's host four trials before it, of which two more were followed only; others
    elsewhere and later."""
    tuned(tmp_path, "20240101-000000-aaaaaa", "elsewhere", [1.3, 1.3])
    tuned(tmp_path, "20240101-000001-aaaaaa", "elsewhere", [1.3, 1.3], corrected=[1.0, 1.0])
    tuned(tmp_path, "20240101-000002-aaaaaa", "elsewhere", [1.3, 1.3], follows=0)
    tuned(tmp_path, "20240101-000003-aaaaaa", "other", [4.0] * 9)
    tuned(tmp_path, "20990101-000000-aaaaaa", "elsewhere", [4.0] * 9)
    return tmp_path


def test_only_earlier_trials_of_the_same_host_count(history: Path) -> None:
    at = history / "20250131-091500-abc123"
    found = correction_for(at, "elsewhere")
    assert found is not None and found.trials == 4 and found.scale < 1
    assert correction_for(at, host_name() + "-new") is None and correction_for(at, None) is None
    assert correction_for(history / "20240101-000000-aaaaaa", "elsewhere") is None


def test_a_report_says_that_its_predictions_are_corrected(
    history: Path, tmp_path_factory: Any
) -> None:
    bare = build_report(full_run(tmp_path_factory.mktemp("bare"))).loaders[0]
    run = full_run(history)
    found = build_report(open_run(run.path)).loaders[0]
    note = next(
        each for each in found.notes if "corrected by 4 earlier trials on this host" in each
    )
    assert note not in bare.notes and not any("corrected" in each for each in bare.notes)
    whatif = past_trials.correction_for(run.path, "elsewhere")
    assert whatif is not None


def test_damaged_records_and_unsure_measurements_are_left_out(history: Path) -> None:
    run = history / "20240101-000000-aaaaaa"
    (run / "p4000-0" / "tune0.json").write_text(
        '{"trials": [{"predicted": [3, 2, 1], "measured": "x"}, 7,'
        ' {"predicted": [1e-200, 1, 1e300], "measured": [1, 1, 1e300]},'
        ' {"predicted": [1.5, 2, 2.5], "measured": [0.55, 1.7, 5.4]}]}'
    )
    (run / "p4000-0" / "tune7x.json").write_text("[]")
    assert list(outcomes_of([run, history / "gone"])) == []


def test_the_list_of_accuracy(
    history: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["list", "--accuracy", "--runs", str(history)]) == 0
    text = capsys.readouterr().out
    assert (
        "elsewhere" in text and "num_workers" in text and "Later predictions on elsewhere" in text
    )
    assert main(["list", "--accuracy", "--runs", str(history), "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    both = {(row["host"], row["changed"]): row for row in rows}
    assert len(rows) == 4 and both["other", "all"]["trials"] == 9
    here = both["elsewhere", "all"]
    assert here["trials"] == 13 and here["inside_share"] == 0.0 and here["scale"] is not None
    assert both["other", "num_workers"]["median_error"] == pytest.approx(1 - 1.8 / 4.0)
    assert main(["list", "--accuracy", "--runs", str(history), "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("host,changed,trials,median_error,")
    assert main(["list", "--accuracy", "--runs", str(history / "none")]) == 0
    assert "No trial with a prediction" in capsys.readouterr().out


def test_trials_that_were_too_short_are_counted_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_trials_of_a_run_that_goes_on_are_read_again(tmp_path: Path) -> None:
    id_ = "20240101-000000-aaaaaa"
    tuned(tmp_path, id_, "elsewhere", [1.7])
    assert len(list(outcomes_of([tmp_path / id_]))) == 1
    file = next((tmp_path / id_).glob("p*/tune0.json"))
    told = json.loads(file.read_text())
    file.write_text(json.dumps({**told, "trials": told["trials"] * 2}))
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 10**9))  # within the clock's own steps
    assert len(list(outcomes_of([tmp_path / id_]))) == 2
