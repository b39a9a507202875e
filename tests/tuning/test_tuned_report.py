"""What tuning wrote down, read again: the trials beside the advice, and what to write into the code."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from loaderscope.advisors.assemble.tried import trial_for, with_trials
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.profiler.store.run.tuning import Tried, Tuned, changed_words
from loaderscope.reports.text.tuned_text import render_tuned
from loaderscope.reports.words.advice_words import effect_text
from report_samples import full_report, full_run

OWN = {"num_workers": 4, "prefetch_factor": 2, "pin_memory": False, "persistent_workers": False, "in_order": True}
BEST = {**OWN, "num_workers": 8}


def trial(settings: dict[str, Any], **facts: Any) -> dict[str, Any]:
    base = {
        "settings": settings,
        "outcome": "not faster",
        "why": None,
        "predicted": None,
        "measured": None,
        "seconds": 9.0,
    }
    return {**base, **facts}


def tuned_run(runs: Path, **facts: Any) -> Run:
    run = full_run(runs)
    t_ns = int(run.loaders[0].batches["t_ns"][100])
    told = {
        "format": 1,
        "own": OWN,
        "chosen": BEST,
        "decided": True,
        "said": "num_workers=8 is faster, and stays",
        "trials": [
            trial(BEST, outcome="proven", predicted=[1.4, 1.7, 1.8], measured=[1.55, 1.63, 1.7], seconds=14.2),
            trial({**OWN, "num_workers": 0}, measured=[0.3, 0.31, 0.32]),
            trial({**OWN, "num_workers": 64}, outcome="not tried", why="its workers may take 9 GB of memory"),
        ],
        "switches": [{"t_ns": t_ns, "epoch": 0, "batch": 100, "settings": BEST}],
        **facts,
    }
    (run.processes[0].path / "tune0.json").write_text(json.dumps(told))
    return open_run(run.path)


def test_advice_that_was_tried_says_what_it_came_to(tmp_path: Path) -> None:
    run = tuned_run(tmp_path)
    tuning = run.loaders[0].tuning
    assert tuning is not None
    loader = with_trials(full_report(run).loaders[0], tuning)
    first = loader.recommendations[0]
    assert (first.measured, first.measured_s) == (1.63, 14.2)
    assert effect_text(first) == "proved ×1.63 (1.55–1.70) in 14 s; predicted ×1.35 (1.22–1.41)"
    assert any("num_workers=8 is faster, and stays" in note for note in loader.notes)


def test_figures_are_of_the_settings_of_the_code(tmp_path: Path) -> None:
    run = tuned_run(tmp_path)
    assert run.loaders[0].batches.rows == 300 and run.loaders[0].as_coded().batches.rows == 100
    back = run.loaders[0].batches["t_ns"][200]
    switches = [{"t_ns": 0, "epoch": 0, "batch": 0, "settings": BEST}, {"t_ns": int(back), "settings": OWN}]
    made = tuned_run(tmp_path / "again", switches=switches).loaders[0]
    assert np.array_equal(made.as_coded().batches["t_ns"], made.batches["t_ns"][200:])


def test_what_to_write_into_the_code_and_what_was_tried(tmp_path: Path) -> None:
    text = render_tuned(tuned_run(tmp_path), 80, False, True)
    assert "proved ×1.63 (1.55–1.70) in 14 s; predicted ×1.7 (1.4–1.8)" in text
    assert "DataLoader(…, num_workers=8)" in text
    assert "tried num_workers=0: not faster; measured ×0.31 (0.30–0.32) in 9 s" in text
    assert "tried num_workers=64: not tried; not measured (its workers may take 9 GB of memory)" in text
    assert "Tuned: no loader" in render_tuned(full_run(tmp_path / "plain"), 80, False, True)


def test_a_damaged_record_of_tuning_is_no_record(tmp_path: Path) -> None:
    for damage in ({"trials": [7, {"measured": [3, 2, 1], "settings": 4}]}, {"switches": "none"}, {"own": None}):
        tuned = tuned_run(tmp_path / str(damage)[2:6], **damage)
        assert render_tuned(tuned, 80, False, True).startswith("Tuned ")
        assert tuned.loaders[0].as_coded().batches.rows <= 300
    path = tuned.processes[0].path / "tune0.json"
    path.write_text('{"own": ')
    again = open_run(tuned.path)
    assert again.loaders[0].tuning is None and any("tune0.json" in note for note in again.loaders[0].notes)


def test_whole_batches_that_were_proven_are_advised_whatever_the_waiting(tmp_path: Path) -> None:
    """What `__getitems__` would bring is tried while the loop runs; its code is then in the report."""
    run = full_run(tmp_path)
    at_once = {**OWN, "num_workers": 0, "prefetch_factor": 2, "batched": True}
    tuned = Tuned(
        own={**OWN, "prefetch_factor": 4, "batched": False},
        chosen=at_once,
        decided=True,
        said="",
        trials=(tried_of(at_once, (2.0, 2.5, 3.0), "proven"),),
        switches=(),
    )
    advice = full_report(run).loaders[0].recommendations[0]
    whole = replace(advice, rule="batched-getitems", change=replace(advice.change, params={"batch_size": None}))
    assert trial_for(whole, tuned) is tuned.trials[0] and trial_for(advice, tuned) is None
    with_code = with_trials(replace(full_report(run).loaders[0], recommendations=(whole,)), tuned)
    assert effect_text(with_code.recommendations[0]).startswith("proved ×2.5 (2.0–3.0)")


def tried_of(settings: dict[str, Any], measured: tuple[float, float, float], outcome: str) -> Tried:
    return Tried(settings, None, measured, OWN, (), (), outcome, None, 5.0)


def test_without_workers_what_is_said_of_them_is_nothing() -> None:
    none = {**OWN, "num_workers": 0, "prefetch_factor": 2, "persistent_workers": False}
    own = {**OWN, "prefetch_factor": 8, "persistent_workers": True}
    tuned = Tuned(own, none, True, "", (tried_of(none, (1.1, 1.2, 1.3), "proven"),), ())
    assert tuned.trial_of({"num_workers": 0}) is tuned.trials[0]
    assert tuned.trial_of({"num_workers": 2}) is None


def test_whole_batches_in_words(tmp_path: Path) -> None:
    at_once = {**OWN, "num_workers": 0, "batched": True}
    proven = trial(at_once, outcome="proven", predicted=[1.4, 1.7, 1.8], measured=[1.5, 1.6, 1.7], seconds=4.0)
    text = render_tuned(tuned_run(tmp_path, chosen=at_once, trials=[proven]), 80, False, True)
    assert "take the code of the advice batched-getitems" in text and "DataLoader(" not in text
    assert changed_words(OWN, at_once) == "num_workers=0, whole batches by one look-up"
