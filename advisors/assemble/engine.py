"""Applies every rule to a loader and ranks what they find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..case.case import Advice, Case, Unmeasured
from ..rules import Rule, all_rules
from ..schema.report_model import LoaderReport, Range, Recommendation

# A recommendation is made only where at least this is gained in all likelihood, or where it is about correctness.
LEAST_GAIN = 1.03


def advise(case: Case, rules: Sequence[Rule] | None = None) -> LoaderReport:
    """The case's report with recommendations (best first), rejected advice, and what could not be judged.

    A rule that fails costs its own advice, never the report: the failure becomes a note.
    """
    recommended: list[Recommendation] = []
    rejected: list[Recommendation] = []
    unmeasured: dict[str, str] = {}
    notes = list(case.report.notes)
    for rule in all_rules() if rules is None else rules:
        try:
            outcomes = list(rule.examine(case))
        except Exception as error:
            notes.append(f"the rule {rule.name} failed and is left out: {type(error).__name__}: {error}")
            continue
        for outcome in outcomes:
            if isinstance(outcome, Unmeasured):
                unmeasured[rule.name] = outcome.reason
            else:
                place(outcome.recommendation(rule.name, rule.kind), outcome, case, recommended, rejected)
    # Wrong training and a crash ahead come before speed: a faster loop over the wrong data helps nobody.
    recommended.sort(key=lambda item: (item.kind == "speed", -item.predicted.mid))
    rejected.sort(key=lambda item: item.predicted.mid)
    return replace(
        case.report,
        recommendations=tuple(recommended),
        rejected=tuple(rejected),
        unmeasured=unmeasured,
        notes=tuple(notes),
    )


def place(
    found: Recommendation, advice: Advice, case: Case, recommended: list[Recommendation], rejected: list[Recommendation]
) -> None:
    """Recommended, rejected, or neither: advice about speed needs a verdict, a gain, and never promises more than free
    loading would give, or free loading and copying."""
    if found.kind != "speed":
        (rejected if advice.rejected else recommended).append(found)
        return
    if case.report.verdict == "too-short":
        return
    found = replace(found, predicted=capped(found.predicted, _headroom(case.report.headroom, advice.beside_loading)))
    if advice.rejected:
        rejected.append(found)
    elif case.report.verdict == "compute-bound" and not advice.beside_loading:
        return  # the verdict says it all: loading is not what limits training
    elif found.predicted.low > LEAST_GAIN:
        recommended.append(found)
    elif found.predicted.mid > LEAST_GAIN:
        why = "The gain is not certain enough to recommend it: it may be nothing. " + found.why
        rejected.append(replace(found, why=why))


def _headroom(loading: float | None, beside: float) -> float | None:
    """The factor if loading were free, and with it this share of a step."""
    if loading is None or not beside:
        return loading
    return 1 / max(1e-3, 1 / loading - beside)


def capped(predicted: Range, headroom: float | None) -> Range:
    """The range, held below what free loading would give (unknown: as it is)."""
    if headroom is None:
        return predicted
    top = max(headroom, 1.0)
    return Range(min(predicted.low, top), min(predicted.mid, top), min(predicted.high, top))
