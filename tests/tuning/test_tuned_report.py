"""What tuning wrote down, read again: the trials beside the advice, and what to write."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dashboard_samples import OWN
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.assemble.tried import with_trials
from loaderscope.advisors.schema.report_model import Report
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.profiler.store.run.tuning import Tried, Tuned
from loaderscope.reports.html.html_report import render_html
from loaderscope.reports.markdown.draw import render_markdown
from loaderscope.reports.text.text import MORE_LINES, MOST_LINES, render_brief, render_text
from loaderscope.reports.words.advice_words import effect_text
from loaderscope.reports.words.tuned_words import tuned_text
from report_samples import full_report, full_run

BEST = {**OWN, "num_workers": 8}


def trial(settings: dict[str, Any], **facts: Any) -> dict[str, Any]:
    unknown = dict.fromkeys(("why", "predicted", "measured"))
    return {**unknown, "settings": settings, "outcome": "not faster", "seconds": 9.0, **facts}


def tuned_run(runs: Path, **facts: Any) -> Run:
    run = full_run(runs)
    t_ns = int(run.loaders[0].batches["t_ns"][100])
    proven = {"predicted": [1.4, 1.7, 1.8], "measured": [1.55, 1.63, 1.7], "seconds": 14.2}
    why = "its workers may take 9 GB of memory"
    trials = [
        trial(BEST, outcome="proven", **proven),
        trial({**OWN, "num_workers": 0}, measured=[0.3, 0.31, 0.32]),
        trial({**OWN, "num_workers": 64}, outcome="not tried", why=why),
    ]
    said = "num_workers=8 is faster, and stays"
    told = {"format": 1, "own": OWN, "chosen": BEST, "decided": True, "said": said}
    told["switches"] = [{"t_ns": t_ns, "epoch": 0, "batch": 100, "settings": BEST}]
    told |= {"trials": trials, **facts}
    (run.processes[0].path / "tune0.json").write_text(json.dumps(told))
    return open_run(run.path)


def test_advice_that_was_tried_says_what_it_came_to(tmp_path: Path) -> None:
    run = tuned_run(tmp_path)
    loader = with_trials(full_report(run).loaders[0], run.loaders[0].tuning)
    first = loader.recommendations[0]
    assert (first.measured, first.measured_s) == (1.63, 14.2)
    assert effect_text(first) == "proved ×1.63 (1.55–1.70) in 14 s; predicted ×1.35 (1.22–1.41)"
    assert any("num_workers=8 is faster, and stays" in note for note in loader.notes)
    text = tuned_text(run)
    assert "proved ×1.63 (1.55–1.70) in 14 s; predicted ×1.7 (1.4–1.8)" in text
    assert "DataLoader(…, num_workers=8)" in text
    assert "tried num_workers=0: not faster; measured ×0.31 (0.30–0.32) in 9 s" in text
    assert "not tried: num_workers=64; not measured (its workers may take 9 GB of memory)" in text
    assert "Tuned: no loader" in tuned_text(full_run(tmp_path / "plain"))


def test_figures_are_of_the_settings_of_the_code(tmp_path: Path) -> None:
    run = tuned_run(tmp_path)
    assert run.loaders[0].batches.rows == 300 and run.loaders[0].as_coded().batches.rows == 100
    back = run.loaders[0].batches["t_ns"][200]
    switches = [{"t_ns": 0, "settings": BEST}, {"t_ns": int(back), "settings": OWN}]
    made = tuned_run(tmp_path / "again", switches=switches).loaders[0]
    assert np.array_equal(made.as_coded().batches["t_ns"], made.batches["t_ns"][200:])


def test_a_damaged_record_of_tuning_is_no_record(tmp_path: Path) -> None:
    damaged = {"trials": [7, {"measured": [3, 2, 1], "settings": 4}]}
    for damage in (damaged, {"switches": "none"}, {"own": None}):
        tuned = tuned_run(tmp_path / str(damage)[2:6], **damage)
        assert tuned_text(tuned).startswith("Tuned ")
        assert tuned.loaders[0].as_coded().batches.rows <= 300
    path = tuned.processes[0].path / "tune0.json"
    path.write_text('{"own": ')
    again = open_run(tuned.path)
    assert again.loaders[0].tuning is None
    assert any("tune0.json" in note for note in again.loaders[0].notes)


def test_without_workers_what_is_said_of_them_is_nothing() -> None:
    none = {**OWN, "num_workers": 0, "prefetch_factor": 2, "persistent_workers": False}
    own = {**OWN, "prefetch_factor": 8, "persistent_workers": True}
    tried = Tried(none, None, (1.1, 1.2, 1.3), OWN, (), (), "proven", None, 5.0)
    tuned = Tuned(own, none, True, "", (tried,), ())
    assert tuned.trial_of({"num_workers": 0}) is tuned.trials[0]
    assert tuned.trial_of({"num_workers": 2}) is None


def test_in_one_output_nothing_is_both_not_faster_and_proved(tmp_path: Path) -> None:
    """Not faster than the best so far may be faster than the code's own: it says than what."""
    other = trial({**OWN, "num_workers": 12}, base=BEST, measured=[1.4, 1.6, 1.8], seconds=8.0)
    none = {**OWN, "num_workers": 0}
    short = trial(none, base=OWN, outcome=None, measured=[7.3, 22.0, 68.0], seconds=1.2)
    best = trial(BEST, outcome="proven", measured=[1.5, 1.6, 1.7])
    text = tuned_text(tuned_run(tmp_path, trials=[best, other, short]))
    assert "num_workers=12: not faster than num_workers=8; measured ×1.6 (1.4–1.8) in 8 s" in text
    short = "the script ended before it was decided; too short to tell: ×22 (7.3–68) in 1 s"
    assert f"tried num_workers=0: {short}" in text
    assert text.count("proved") == 1


def test_every_format_leads_with_what_was_proven(tmp_path: Path) -> None:
    run = tuned_run(tmp_path)
    report = build_report(run)
    brief, full = render_brief(report), render_text(report)
    for text in (brief, full):
        lines = [line.strip() for line in text.splitlines() if line.strip(" ─")]
        assert lines[0].startswith("● ")
        assert lines[1:4] == [
            "Tuned: num_workers=8 is faster, and stays",
            "proved ×1.63 (1.55–1.70) in 14 s; predicted ×1.7 (1.4–1.8)",
            "to keep it, write: DataLoader(…, num_workers=8)",
        ]
    assert "What else was tried" in full and "not tried: num_workers=64" in full
    markdown, html = render_markdown(report), render_html(report, run)
    lead = markdown.index("**Tuned: num\\_workers=8 is faster, and stays**")
    assert lead < markdown.index("Headroom") and "What else was tried" in markdown
    assert html.index("Tuned: num_workers=8 is faster, and stays") < html.index("Headroom")
    assert "proved ×1.63 (1.55–1.70) in 14 s" in html and "DataLoader(…, num_workers=8)" in html
    assert "What else was tried" in html and "its workers may take 9 GB of memory" in html
    assert Report.from_json(report.to_json()) == report
    assert "Tuned:" not in render_brief(report, tuned=False)  # `loaderscope tune` has told it
    several = render_brief(replace(report, loaders=report.loaders * 3))
    assert several.count("Tuned: num_workers=8 is faster, and stays; proved") == 2
    assert len(several.splitlines()) <= MOST_LINES + 2 * MORE_LINES


def test_hostile_records_of_tuning_are_text(tmp_path: Path) -> None:
    said = "<script>alert(1)</script>\x1b[31m|`*x*`"
    trials = [trial({**OWN, "num_workers": 0}, outcome=said, why=said)]
    report = build_report(run := tuned_run(tmp_path, said=said, trials=trials))
    page = render_html(report, run)
    assert "<script>alert(1)" not in page and "&lt;script&gt;alert(1)" in page
    assert "\x1b" not in render_text(report) + render_markdown(report)


def test_a_loop_that_ends_while_more_is_tried_has_proven_something_all_the_same(tmp_path):
    said = "the loop ended before anything was decided"
    text = tuned_text(tuned_run(tmp_path, decided=False, chosen=OWN, said=said))
    ends = ": num_workers=8 is faster; the loop ended before all was tried"
    assert text.splitlines()[0].endswith(ends)
    assert "the loop ended before anything" not in text
