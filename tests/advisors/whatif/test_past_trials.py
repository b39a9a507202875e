"""Predictions against what tuning measured, as `loaderscope list --accuracy` shows them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builders import RunBuilder
from loaderscope.advisors.whatif.past_trials import predicted_trials
from loaderscope.cli import main

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


def test_the_list_of_accuracy(
    history: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
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
