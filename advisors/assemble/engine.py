"""Applies every rule to a loader and makes a plan of what they find."""

import math
from dataclasses import replace

from ..case.advice import WOULD_NOT_HELP, Advice, Unmeasured
from ..case.case import Case
from ..case.code_text import is_by_hand, told_by_hand
from ..rules import all_rules
from ..schema.gains import LEAST_GAIN
from ..schema.report_model import LoaderReport, Range, Recommendation
from ..whatif.accuracy import by_hand, narrowed
from .findings import findings_of
from .plan import Option, capped, plan_of
from .tried import trial_for, why_not

# The part of the loop's own time that goes with loading counts from this part of what free loading
# would leave on.
RELEASED_FROM = 0.05
# A gain whose lower end is below LEAST_GAIN, but above 1, is recommended if it is likely this much.
SURE_GAIN, LIKELY_GAIN = 1.005, 1.15
# A loop that computes for this part of its time gets no advice that gains less than a tenth.
COMPUTING, WORTH = 0.85, 1.10
NOT_PREDICTED = "what a change would gain cannot be predicted, so little is advised"
MORE_THAN_FREE = (
    "This can exceed the headroom: computing gets faster too where loading no longer takes its "
    "cores and caches."
)
LITTLE = "It would gain little: the loop computes most of its time."
UNSURE = "The gain is not certain enough to recommend it: it may be nothing."


def advise(case: Case) -> LoaderReport:
    """The case's report with recommendations (in the order of the plan), rejected advice, and what
    could not be judged.

    A rule that fails costs its own advice, never the report: the failure becomes a note.
    """
    options: list[Option] = []
    rejected: list[Recommendation] = []
    unmeasured: dict[str, str] = {}
    notes = list(case.report.notes)
    if case.whatif_reason and case.meets("DataLoader") and case.report.verdict != "too-short":
        notes.append(f"{NOT_PREDICTED}: {case.whatif_reason}")
    for rule in all_rules():
        try:
            outcomes = list(rule.examine(case))
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            notes.append(f"the rule {rule.name} failed and is left out: {problem}")
            continue
        for outcome in outcomes:
            if isinstance(outcome, Unmeasured):
                unmeasured[rule.name] = outcome.reason
                continue
            found = judged(outcome.recommendation(rule.name, rule.kind, rule.effort), outcome, case)
            if found is not None and found[1]:
                besides = _besides(case, outcome)
                options.append(Option(found[0], outcome.asked, besides, outcome.by_hand))
            elif found is not None:
                rejected.append(found[0])
    ordered, plan = plan_of(case, options)
    return replace(
        case.report,
        recommendations=ordered,
        rejected=tuple(sorted(rejected, key=lambda item: item.predicted.mid)),
        unmeasured=unmeasured,
        findings=findings_of(case),
        notes=tuple(notes),
        plan=plan,
    )


def judged(found: Recommendation, advice: Advice, case: Case) -> tuple[Recommendation, bool] | None:
    """What the advice may say, and whether it is recommended or else rejected; None: neither.

    Advice about speed needs a verdict and a gain (predicted, or proven by a trial). It never
    promises more than free loading would give, or free loading and copying.
    """
    if not advice.rejected:
        found = replace(found, change=replace(found.change, code=told_by_hand(found.change.code)))
    if found.kind != "speed":
        return found, not advice.rejected
    if case.report.verdict == "too-short":
        return None
    predicted, headroom = found.predicted, case.report.headroom or math.inf
    predicted = (by_hand if is_by_hand(found.change.code) else narrowed)(predicted)
    predicted = capped(predicted, case.report, _besides(case, advice))
    found = replace(found, predicted=predicted)
    if predicted.high > headroom and not advice.beside_loading:
        found = replace(found, why=f"{found.why} {MORE_THAN_FREE}")
    trial, against = trial_for(found, case.loader.tuning), why_not(found, case.loader.tuning)
    if advice.rejected:
        return replace(found, predicted=_doubted(found)), False
    if against is not None:
        return replace(found, predicted=_doubted(found), why=f"{against} {found.why}"), False
    if trial is not None and trial.outcome == "proven":
        return found, True
    if not advice.beside_loading:
        if case.compute_bound:
            return None  # the verdict says it all: loading is not what limits training
        if headroom < 1 / COMPUTING and predicted.mid < WORTH:
            little = replace(found, why=f"{LITTLE} {found.why}")
            return (little, False) if predicted.mid > 1 else None
    likely = predicted.mid >= LIKELY_GAIN
    if predicted.low > (SURE_GAIN if likely else LEAST_GAIN) or (advice.by_hand and likely):
        return found, True
    unsure = replace(found, why=f"{UNSURE} {found.why}")
    return (unsure, False) if predicted.mid > LEAST_GAIN else None


def _doubted(found: Recommendation) -> Range:
    """What is left of a prediction where something speaks against it that the model does not know:
    no gain is certain, and of what would not help none is likely."""
    predicted = found.predicted
    if found.title.endswith(WOULD_NOT_HELP):
        top = min(predicted.high, LEAST_GAIN)
        return Range(min(predicted.low, 1.0), min(predicted.mid, top), top)
    return replace(predicted, low=min(predicted.low, 1.0))


def _besides(case: Case, advice: Advice) -> float:
    """The share of a step that the advice is about besides loading. It includes what the loop
    computes only because batches come from workers, if these go."""
    if case.whatif is None:
        return advice.beside_loading
    without_workers = (advice.asked or {}).get("num_workers") == 0
    passing = without_workers * case.whatif.released_share
    # Of a loop that hardly computes, a small share of a step is most of what free loading would
    # leave.
    left = 1 / case.report.headroom if case.report.headroom else 1.0
    return advice.beside_loading + (passing if passing >= RELEASED_FROM * left else 0.0)
