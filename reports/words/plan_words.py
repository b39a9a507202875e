"""The plan in words: what each step is, what steps come to together, what is left out and why, and
what may help."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...advisors.schema.gains import LEAST_GAIN
from ...advisors.schema.report_model import LeftOut, LoaderReport, Recommendation
from .advice_words import effect_text, predicted_text


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
    left = (
        {each.advice: _why(each) for each in loader.plan.left_out}
        if loader.plan is not None
        else {}
    )
    reached = (
        {each.advice: each.together for each in loader.plan.steps}
        if loader.plan is not None
        else {}
    )
    found, speed = [], 0
    for place, each in enumerate(loader.recommendations):
        effect = effect_text(each)
        if place in left:
            effect = effect and f"{effect} by itself"
        elif each.kind == "speed" and place in reached:
            if speed:
                effect = (
                    f"with {'what is' if speed > 1 else 'the step'} before "
                    f"{predicted_text(reached[place])}"
                )
            speed += 1
        found.append(PlanRow(place + 1, each, effect, each.effort or "", left.get(place)))
    return found


def _why(each: LeftOut) -> str:
    return f"{'instead of' if each.excluded else 'not after'} {each.step + 1}: {each.why}"


def plan_summary(loader: LoaderReport) -> str | None:
    """'1 and 2 together ×2.6 (2.1–3.2). After step 2 the loop computes 80 % of the time: stop
    there.'"""
    plan = loader.plan
    if plan is None:
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


def may_help(loader: LoaderReport) -> Iterator[Recommendation]:
    """Changes whose gain is likely, and not certain enough to advise them; of those that were
    tried, trials tell."""
    likely = [
        each
        for each in loader.rejected
        if each.kind == "speed" and each.measured_range is None
        if each.predicted.low <= LEAST_GAIN < each.predicted.mid
    ]
    return iter(sorted(likely, key=lambda each: -each.predicted.mid))
