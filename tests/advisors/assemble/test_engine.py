"""Where a finding goes, and what it may promise: by the verdict, and by what trials measured."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loaderscope.advisors.assemble import engine, make_case
from loaderscope.advisors.assemble.engine import MORE_THAN_FREE, NOT_PREDICTED, advise, judged
from loaderscope.advisors.assemble.tried import why_not, with_trials
from loaderscope.advisors.case.advice import Advice
from loaderscope.advisors.case.case import Case
from loaderscope.advisors.schema.report_model import Range
from loaderscope.advisors.whatif import WhatIf
from loaderscope.advisors.whatif.accuracy import narrowed
from loaderscope.profiler.store.run.tuning import Three, Tried, Tuned
from loaderscope.reports.words.advice_words import effect_text, may_help
from loaderscope.reports.words.sentences import nothing_to_change
from rule_cases import FakeWhatIf, case_of, workers_config
from rule_rows import rows_of, worker_loop


def a_case(tmp_path: Path, wait_ms: float, **report: Any) -> Case:
    rows, epochs = rows_of(wait_ms=wait_ms, compute_ms=5.0)
    found = case_of(tmp_path, rows, epochs=epochs)
    return replace(found, report=replace(found.report, **report))


@pytest.fixture
def found_case(tmp_path: Path) -> Case:
    return a_case(tmp_path, 0.1)


LIKELY = Range(1.2, 1.5, 3.0)


@pytest.fixture(autouse=True)
def as_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "narrowed", lambda found: found)


def judge(case: Case, predicted: Range = LIKELY, headroom: float | None = 9.0, **more: Any) -> Any:
    """(the recommendation, whether it is made), or None."""
    verdict = more.pop("verdict", "input-bound")
    case = replace(case, report=replace(case.report, verdict=verdict, headroom=headroom))
    told = {"title": "title", "why": "why", "evidence": {}, "code": "x = 1\n", **more}
    advice = Advice(predicted=predicted, **told)
    return judged(advice.recommendation("num-workers", "speed"), advice, case)


@pytest.mark.parametrize(("crowded", "headroom"), [(0.0, 99.0), (2.0, 10.0)])
def test_headroom_beside_crowded_cores_is_that_of_free_ones(
    tmp_path, monkeypatch, crowded, headroom
):
    monkeypatch.setattr(make_case, "CROWDED", crowded)
    monkeypatch.setattr(WhatIf, "free", lambda self: 99.0)
    rows = worker_loop(200, wait_ms=9.0, compute_ms=1.0, fetch_ms=20.0)
    found = case_of(tmp_path, rows, config=workers_config())
    made = make_case.case_of(found.run, found.process, found.loader, found.report, found.system)
    assert made.report.headroom == pytest.approx(headroom, rel=0.1)


@pytest.mark.parametrize(
    ("copies", "headroom", "verdict", "high"),
    [
        (0.0, 1.01, "compute-bound", None),
        (0.4, 1.0, "compute-bound", 1 / 0.6),  # it waits for its copies
        (0.0, 1.25, "input-bound", 1.25),
        (0.3, 1.25, "input-bound", 2.0),  # on top of free loading
        (0.3, None, "input-bound", 3.0),
    ],
)
def test_no_more_is_promised_than_free_loading(found_case, copies, headroom, verdict, high):
    found = judge(found_case, headroom=headroom, beside_loading=copies, verdict=verdict)
    said = found[0].predicted.high if found and found[1] else None
    assert said == (high and pytest.approx(high))


@pytest.mark.parametrize(
    ("low", "mid", "said"), [(1.02, 1.3, True), (1.02, 1.1, False), (1.0, 1.3, False)]
)
@pytest.mark.parametrize("code", ["def read(path):\n    return path\n", "x = 1\n"])
def test_a_likely_gain_that_is_surely_one_is_recommended(found_case, low, mid, said, code):
    found, made = judge(found_case, Range(low, mid, mid), code=code)
    assert made is said and found.change.code.endswith(code)
    # What only defines says that it is for the hand.
    assert found.change.code.startswith("# By hand") is code.startswith("def")


def test_only_what_is_not_done_by_hand_is_narrowed(found_case, monkeypatch) -> None:
    monkeypatch.setattr(engine, "narrowed", narrowed)
    pasted, by_hand = (judge(found_case, code=f"{first}x = 1\n") for first in ("", "# By hand\n"))
    assert pasted and pasted[0].predicted == narrowed(LIKELY)
    # What a person changes brings more: the upper end and the middle move up.
    assert by_hand and by_hand[0].predicted.low == LIKELY.low
    assert by_hand[0].predicted.mid > LIKELY.mid and by_hand[0].predicted.high > LIKELY.high


def test_what_is_held_below_free_loading_is_as_unsure_as_that(found_case: Case) -> None:
    shares = {"stall_share": 0.2, "stall_share_low": 0.15, "stall_share_high": 0.25}
    basis = replace(found_case.report.basis, **shares)
    case = replace(found_case, report=replace(found_case.report, basis=basis))
    found, made = judge(case, headroom=1.15)
    assert made and found.predicted.low == pytest.approx(1 / (1 / 1.15 + 0.05))
    assert found.predicted.mid <= found.predicted.high == 1.15  # as the report says it


@pytest.mark.parametrize(
    ("title", "predicted", "headroom", "rejected", "left"),
    [
        # A model's gain beside a reason that speaks against it.
        ("num_workers=4 would not help", Range(1.9, 2.1, 2.4), 3.0, True, Range(1.0, 1.03, 1.03)),
        ("Use 4 workers", Range(1.4, 1.7, 2.0), 3.0, True, Range(1.0, 1.7, 2.0)),
        ("num_workers=4 would not help", Range(0.7, 0.8, 0.9), 3.0, True, Range(0.7, 0.8, 0.9)),
        # A loop that computes 87 % of its time.
        ("Use 2 workers", Range(1.05, 1.07, 1.09), 1.15, False, Range(1.05, 1.07, 1.09)),
    ],
)
def test_what_is_not_advised(found_case, title, predicted, headroom, rejected, left):
    basis = replace(found_case.report.basis, stall_share=None, stall_share_low=None)
    case = replace(found_case, report=replace(found_case.report, basis=basis))
    found, made = judge(case, predicted, headroom, title=title, rejected=rejected)
    assert not made and found.predicted == left
    assert ("gain little" in found.why) is not rejected


def test_what_goes_with_workers_counts_beside_a_loop_that_hardly_computes(found_case: Case) -> None:
    """A step computes for 4 % of its time, all of it to give back what came from workers."""
    whatif = FakeWhatIf()
    whatif.released_share = 0.0399
    case = replace(found_case, whatif=whatif)
    asked = ({"num_workers": workers} for workers in (0, 2))
    found = [judge(case, Range(20.0, 100.0, 400.0), 25.0, asked=each) for each in asked]
    (without, made), (other, made_too) = found
    assert made and made_too
    assert without.predicted.mid == 100.0 and MORE_THAN_FREE in without.why
    assert (other.predicted.mid, other.predicted.high) == pytest.approx((25.0, 25.0 / 0.6))


def test_a_loop_of_which_nothing_can_be_predicted_says_why(found_case: Case) -> None:
    def said(reason: str | None, verdict: str) -> list[str]:
        report = replace(found_case.report, verdict=verdict)  # type: ignore[arg-type]
        found = advise(replace(found_case, whatif=None, whatif_reason=reason, report=report))
        return [note for note in found.notes if NOT_PREDICTED in note]

    assert said("too little is known", "input-bound") == [f"{NOT_PREDICTED}: too little is known"]
    assert not said("too little is known", "too-short") and not said(None, "input-bound")


OWN = {"num_workers": 4, "prefetch_factor": 2, "pin_memory": False}
OWN |= {"persistent_workers": False, "in_order": True}
NONE = {**OWN, "num_workers": 0}


def tried(settings: Any, outcome: str | None, measured: Three, seconds: float = 9.0) -> Tried:
    return Tried(settings, (1.2, 1.5, 1.9), measured, OWN, (), (), outcome, None, seconds)


def tuned_by(*trials: Tried) -> Tuned:
    return Tuned(OWN, OWN, True, "done", trials, ())


@pytest.fixture
def waiting_case(tmp_path: Path) -> Case:
    return a_case(tmp_path, 5.0, verdict="input-bound", headroom=9.0, unmeasured={})


def with_trial(case: Case, tuned: Tuned, **params: Any) -> tuple[list[Any], list[Any]]:
    """(recommended, rejected): advice of these settings, of which much is predicted."""
    case = replace(case, loader=replace(case.loader, tuning=tuned))
    found, made = judge(case, Range(1.3, 1.5, 1.8), why="Much is expected.", params=params)
    lists = {"recommendations": (found,) * made, "rejected": (found,) * (not made)}
    section = with_trials(replace(case.report, **lists), tuned)
    return [*section.recommendations], [*section.rejected]


SLOWER = "It was slower when it was tried."


@pytest.mark.parametrize(
    ("trial", "why"),
    [
        (tried(NONE, "not faster", (0.30, 0.31, 0.32)), f"{SLOWER} Much is expected."),
        (tried(NONE, None, (0.02, 0.47, 14.0), 1.2), f"{SLOWER} Much is expected."),
        (tried(NONE, "not faster", (0.98, 1.0, 1.02)), "It was no faster when it was tried."),
    ],
)
def test_what_was_not_faster_is_not_advised(waiting_case: Case, trial: Tried, why: str) -> None:
    recommended, (rejected,) = with_trial(waiting_case, tuned_by(trial), num_workers=0)
    assert recommended == [] and rejected.why.startswith(why)


SHORT = "too short to tell: ×1.4 (0.30–6.0) in 1 s; predicted ×1.5 (1.3–1.8)"


@pytest.mark.parametrize(
    ("outcome", "measured", "seconds", "gain", "effect"),
    [
        (None, (0.3, 1.4, 6.0), 1.2, None, SHORT),
        ("proven", (2.0, 3.0, 4.5), 9.0, 3.0, "proved ×3.0 (2.0–4.5) in 9 s"),
    ],
)
def test_advice_that_was_tried(waiting_case, outcome, measured, seconds, gain, effect):
    trial = tried(NONE, outcome, measured, seconds)
    (advised,), rejected = with_trial(waiting_case, tuned_by(trial), num_workers=0)
    assert (rejected, advised.measured) == ([], gain)
    assert gain or advised.tried == "undecided"
    assert effect_text(advised).startswith(effect)


@pytest.mark.parametrize(
    ("workers", "gain", "against"), [(8, 1.6, True), (8, 1.2, False), (2, 1.2, False), (2, 2, True)]
)
def test_others_than_the_proven_where_more_is_certain(waiting_case, workers, gain, against):
    best = tried({**OWN, "num_workers": 6}, "proven", (gain - 0.1, gain, gain + 0.1))
    recommended, rejected = with_trial(waiting_case, tuned_by(best), num_workers=workers)
    assert bool(rejected) == against == (not recommended)
    same, _ = with_trial(waiting_case, tuned_by(best), num_workers=6, persistent_workers=True)
    assert len(same) == 1


def test_what_does_not_change_settings_is_advised_all_the_same(waiting_case: Case) -> None:
    best = tuned_by(tried(NONE, "proven", (2.9, 3.0, 3.1)))
    (advised,), rejected = with_trial(waiting_case, best)
    change = replace(advised.change, params={"num_workers": 2})
    safe = replace(advised, kind="safety", change=change)
    assert (rejected, why_not(safe, best)) == ([], None)


def test_what_was_tried_in_vain_is_not_what_may_help(waiting_case: Case) -> None:
    tuned = tuned_by(tried(NONE, "not faster", (0.30, 0.31, 0.32)))
    _, rejected = with_trial(waiting_case, tuned, num_workers=0)
    section = replace(waiting_case.report, rejected=tuple(rejected))
    assert may_help(section) is None and "title" not in (nothing_to_change(section) or "")
    proven = tuned_by(tried({**OWN, "num_workers": 6}, "proven", (2.9, 3.0, 3.1)))
    best = with_trials(section, proven)
    assert nothing_to_change(best) == "No change is advised besides what was proven."
