"""The effect of advice in words, and the plan: what each step is, what steps come to together, what
is left out and why, and what may help."""

from dataclasses import dataclass

from ...advisors.schema.figures import times
from ...advisors.schema.gains import LEAST_GAIN
from ...advisors.schema.report_model import LoaderReport, Plan, Range, Recommendation
from ...advisors.schema.tuning_model import certain

SHORT_S = 5.0  # of trying: about as long as the shortest trial that can tell anything


def effect_text(advice: Recommendation) -> str:
    """'predicted ×1.8 (1.5–2.1)', after what was measured, if it was; nothing where speed does not
    change."""
    if advice.measured_range:
        tried = tried_text(advice.measured_range, advice.measured_s, advice.tried)
        return f"{tried}; predicted {predicted_text(advice.predicted)}"
    if advice.measured is not None:
        return f"measured {times(advice.measured)}"
    if advice.predicted.low == advice.predicted.high == 1.0:
        return ""
    return f"predicted {predicted_text(advice.predicted)}"


def tried_text(found: Range, seconds: float | None, outcome: str | None) -> str:
    """'proved ×1.63 (1.55–1.70) in 14 s'; 'measured ×0.31 (0.30–0.32) in 8 s' of what is no gain;
    'too short to tell: ×0.47 (0.02–14) in 1 s', 'not certain: ×1.06 (0.99–1.13) in 25 s' of what is
    neither."""
    if certain(outcome, found):
        verb = "proved" if outcome == "proven" else "measured"
    else:
        verb = "too short to tell:" if seconds is not None and seconds < SHORT_S else "not certain:"
    return f"{verb} {predicted_text(found)}" + (f" in {seconds:.0f} s" if seconds else "")


def predicted_text(predicted: Range) -> str:
    """'×1.8 (1.5–2.1)': the likely factor, and where it lies four times in five."""
    wide = predicted.high - predicted.low >= 0.3
    low, high = (times(value, wide)[1:] for value in (predicted.low, predicted.high))
    middle = times(predicted.mid, wide)
    return middle if low == high else f"{middle} ({low}–{high})"


@dataclass(frozen=True)
class PlanRow:
    """One recommendation. `number` counts from 1; `left_out` says why the plan does without it,
    None for a step."""

    number: int
    advice: Recommendation
    effect: str  # with the steps before, empty where speed does not change
    effort: str
    left_out: str | None


def plan_rows(loader: LoaderReport) -> list[PlanRow]:
    """The recommendations in the order of the plan; without one (an older report), as they are
    listed."""
    plan = loader.plan or Plan((), (), None)
    left = {
        each.advice: f"{'instead of' if each.excluded else 'not after'} {each.step + 1}: {each.why}"
        for each in plan.left_out
    }
    reached = {each.advice: each.together for each in plan.steps}
    found, speed = [], 0
    for place, each in enumerate(loader.recommendations):
        effect = effect_text(each)
        if place in left:
            effect = effect and f"{effect} by itself"
        elif each.kind == "speed" and place in reached:
            if speed:
                before = "what is" if speed > 1 else "the step"
                effect = f"with {before} before {predicted_text(reached[place])}"
            speed += 1
        found.append(PlanRow(place + 1, each, effect, each.effort or "", left.get(place)))
    return found


def plan_summary(loader: LoaderReport) -> str | None:
    """'1 and 2 together ×2.6 (2.1–3.2). After step 2 the loop computes 80 % of the time: stop
    there.'"""
    plan = loader.plan
    if not plan:
        return None
    speed = {place for place, each in enumerate(loader.recommendations) if each.kind == "speed"}
    steps = [each for each in plan.steps if each.advice in speed]
    parts = []
    if len(steps) > 1:
        numbers = [str(each.advice + 1) for each in steps]
        named = f"{', '.join(numbers[:-1])} and {numbers[-1]}"
        parts.append(f"{named} together {predicted_text(steps[-1].together)}.")
    if plan.stop and plan.steps:
        parts.append(f"After step {plan.steps[-1].advice + 1} {plan.stop}")
    return " ".join(parts) or None


def may_help(loader: LoaderReport) -> Recommendation | None:
    """The change whose gain is likely, and not certain enough to advise it; of those that were
    tried, trials tell."""
    likely = (
        each
        for each in loader.rejected
        if each.kind == "speed" and each.measured_range is None
        if each.predicted.low <= LEAST_GAIN < each.predicted.mid
    )
    return max(likely, key=lambda each: each.predicted.mid, default=None)
