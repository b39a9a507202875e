"""What trials measured goes before what is predicted: neither what was slower is advised, nor less
than was proven."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loaderscope.advisors.assemble.engine import judged
from loaderscope.advisors.assemble.tried import why_not, with_trials
from loaderscope.advisors.case.advice import Advice
from loaderscope.advisors.case.case import Case
from loaderscope.advisors.schema.report_model import Range, Recommendation
from loaderscope.profiler.store.run.tuning import Three, Tried, Tuned
from loaderscope.reports.words.advice_words import effect_text, may_help
from loaderscope.reports.words.sentences import nothing_to_change
from rule_cases import case_of
from rule_rows import rows_of

OWN = {"num_workers": 4, "prefetch_factor": 2, "pin_memory": False}
OWN |= {"persistent_workers": False, "in_order": True}
NONE = {**OWN, "num_workers": 0}


def tried(
    settings: dict[str, Any], outcome: str | None, measured: Three | None, seconds: float = 9.0
) -> Tried:
    return Tried(settings, (1.2, 1.5, 1.9), measured, OWN, (), (), outcome, None, seconds)


def tuned_by(*trials: Tried) -> Tuned:
    return Tuned(OWN, OWN, True, "done", trials, ())


@pytest.fixture
def waiting_case(tmp_path: Path) -> Case:
    rows, epochs = rows_of(wait_ms=5.0, compute_ms=5.0)
    found = case_of(tmp_path, rows, epochs=epochs)
    return replace(
        found, report=replace(found.report, verdict="input-bound", headroom=9.0, unmeasured={})
    )


def placed(
    case: Case, tuned: Tuned, **params: Any
) -> tuple[list[Recommendation], list[Recommendation]]:
    """(recommended, rejected): advice of these settings, of which much is predicted."""
    case = replace(case, loader=replace(case.loader, tuning=tuned))
    advice = Advice(
        "title", "Much is expected.", {}, Range(1.3, 1.5, 1.8), "x = 1\n", params=params
    )
    made = judged(advice.recommendation("num-workers", "speed"), advice, case)
    assert made is not None
    recommended, rejected = ((made[0],) if made[1] is said else () for said in (True, False))
    found = replace(case.report, recommendations=recommended, rejected=rejected)
    section = with_trials(found, tuned)
    return [*section.recommendations], [*section.rejected]


@pytest.mark.parametrize(
    ("trial", "why"),
    [
        (
            tried(NONE, "not faster", (0.30, 0.31, 0.32)),
            "It was slower when it was tried. Much is expected.",
        ),
        (
            tried(NONE, None, (0.02, 0.47, 14.0), 1.2),
            "It was slower when it was tried. Much is expected.",
        ),
        (tried(NONE, "not faster", (0.98, 1.0, 1.02)), "It was no faster when it was tried."),
    ],
)
def test_what_was_not_faster_is_not_advised(waiting_case: Case, trial: Tried, why: str) -> None:
    recommended, (rejected,) = placed(waiting_case, tuned_by(trial), num_workers=0)
    assert recommended == [] and rejected.why.startswith(why)


@pytest.mark.parametrize(
    ("trial", "measured", "tried_", "effect"),
    [
        (
            tried(NONE, None, (0.3, 1.4, 6.0), 1.2),
            None,
            "undecided",
            "too short to tell: ×1.4 (0.30–6.0) in 1 s; predicted ×1.5 (1.3–1.8)",
        ),
        (tried(NONE, "proven", (2.0, 3.0, 4.5)), 3.0, "proven", "proved ×3.0 (2.0–4.5) in 9 s"),
    ],
)
def test_what_was_tried_is_advised_with_what_it_came_to(
    waiting_case: Case, trial: Tried, measured: float | None, tried_: str, effect: str
) -> None:
    """A trial that was too short says so, and proves nothing."""
    (advised,), rejected = placed(waiting_case, tuned_by(trial), num_workers=0)
    assert rejected == [] and advised.measured == measured
    assert advised.tried == tried_ or measured
    assert effect_text(advised).startswith(effect)


def test_a_trial_that_was_too_short_and_slower_is_told(waiting_case: Case) -> None:
    slower = tried(NONE, "undecided", (0.02, 0.47, 14.0), 1.2)
    _, (told,) = placed(waiting_case, tuned_by(slower), num_workers=0)
    assert told.measured is None
    assert effect_text(told).startswith("too short to tell: ×0.47 (0.02–14) in 1 s")


@pytest.mark.parametrize(
    ("workers", "gain", "against"), [(8, 1.6, True), (8, 1.2, False), (2, 1.2, False), (2, 2, True)]
)
def test_other_settings_than_those_proven_are_advised_where_more_is_certain_of_them(
    waiting_case: Case, workers: int, gain: float, against: bool
) -> None:
    best = tried({**OWN, "num_workers": 6}, "proven", (gain - 0.1, gain, gain + 0.1))
    recommended, rejected = placed(waiting_case, tuned_by(best), num_workers=workers)
    assert bool(rejected) == against == (not recommended)
    same, _ = placed(waiting_case, tuned_by(best), num_workers=6, persistent_workers=True)
    assert len(same) == 1


def test_what_does_not_change_settings_is_advised_all_the_same(waiting_case: Case) -> None:
    best = tuned_by(tried(NONE, "proven", (2.9, 3.0, 3.1)))
    (advised,), rejected = placed(waiting_case, best)
    assert rejected == []
    change = replace(advised.change, params={"num_workers": 2})
    assert why_not(replace(advised, kind="safety", change=change), best) is None


def test_what_was_tried_in_vain_is_not_what_may_help(waiting_case: Case) -> None:
    tuned = tuned_by(tried(NONE, "not faster", (0.30, 0.31, 0.32)))
    _, rejected = placed(waiting_case, tuned, num_workers=0)
    section = replace(waiting_case.report, rejected=tuple(rejected))
    assert may_help(section) is None and "title" not in (nothing_to_change(section) or "")
    proven = tuned_by(tried({**OWN, "num_workers": 6}, "proven", (2.9, 3.0, 3.1)))
    best = with_trials(section, proven)
    assert nothing_to_change(best) == "No change is advised besides what was proven."
