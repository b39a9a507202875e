"""From a list of advice to a plan: what to do first, what the steps gain together, what is left
out, where to stop."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from ..case.advice import SAME
from ..case.case import Case
from ..schema.figures import percent
from ..schema.gains import LEAST_GAIN
from ..schema.report_model import (
    Effort,
    LeftOut,
    LoaderReport,
    Plan,
    PlanStep,
    Range,
    Recommendation,
)
from ..whatif.accuracy import less_sure
from ..whatif.changes import ARGUMENTS, Excluded, together

# A smaller effort is preferred to a greater one where it gains at least this part of what that does
# (of its logarithm).
NEARLY = 0.8
# One that is needed besides the greater comes first if it gains this part of it: nobody tunes what
# is to be replaced.
HALF = 0.5
# Work that need not be done is removed before the rest is spread over workers, if that gains this
# part of what the best step does.
WASTE_FIRST = 0.35
# A loop that computes for this part of its time is left alone: at most a quarter is still to be
# gained.
COMPUTES = 0.8
# More than this of the time is said to be all of it.
NEARLY_ALL = 0.975

# The headroom becomes this much more when so much besides loading goes that no more is known.
MOSTLY_GONE = 2.0

EFFORTS: tuple[Effort, ...] = get_args(Effort)


@dataclass(frozen=True)
class Option:
    """A recommendation, and what the model was asked for it: None if it was predicted otherwise."""

    advice: Recommendation
    changes: Mapping[str, Any] | None
    beside_loading: float
    by_hand: bool = False

    @property
    def removes_work(self) -> bool:
        """Whether less is to be done or waited for, without storing the data anew. Where only the
        line is known, and not what to do about it, nothing says so."""
        named = set(self.changes or ()) - {*ARGUMENTS, "non_blocking", "copy_stream"}
        return bool(named) and not self.by_hand and self.advice.effort != "a conversion"

    @property
    def effort(self) -> int:
        return EFFORTS.index(self.advice.effort) if self.advice.effort is not None else len(EFFORTS)


def plan_of(
    case: Case, options: Sequence[Option]
) -> tuple[tuple[Recommendation, ...], Plan | None]:
    """The recommendations in the order of the plan, those that it leaves out last; and the plan.

    Wrong training and a crash ahead come before speed: a faster loop over the wrong data helps
    nobody.
    """
    if not options:
        return (), None
    due = [each for each in options if each.advice.kind != "speed"]
    maker = _Maker(case, [each for each in options if each.advice.kind == "speed"], len(due))
    steps = [PlanStep(n, SAME, None) for n in range(len(due))]
    for taken, (_, reached) in enumerate(maker.taken, 1):
        steps.append(PlanStep(len(steps), reached, maker.computing(taken)))
    ordered = [*due, *(each for each, _ in maker.taken), *(each for each, _ in maker.left)]
    left = tuple(replace(why, advice=n) for n, (_, why) in enumerate(maker.left, len(steps)))
    return tuple(each.advice for each in ordered), Plan(tuple(steps), left, maker.stop())


class _Maker:
    """Makes the plan: steps about speed, each with the gain reached by then, and what is left
    out."""

    def __init__(self, case: Case, options: Sequence[Option], before: int) -> None:
        self._case = case
        self._open = sorted(options, key=lambda each: -each.advice.predicted.mid)
        self._before = before  # steps that are not about speed
        self._known: dict[tuple[int, ...], Range] = {}
        self.taken: list[tuple[Option, Range]] = []
        self.left: list[tuple[Option, LeftOut]] = []
        while self._open:
            chosen = self._choice()
            self._open.remove(chosen)
            self.taken.append((chosen, self._with(chosen)))
            self._leave_out()

    @property
    def _reached(self) -> float:
        return self.taken[-1][1].mid if self.taken else 1.0

    def _leave_out(self) -> None:
        """What the steps made so far exclude, or what is not worth making after them."""
        share, last = self.computing(len(self.taken)), self._before + len(self.taken) - 1
        for each in list(self._open):
            excluded = (
                LeftOut(0, place, True, why)
                for place, (step, _) in enumerate(self.taken, self._before)
                if (why := excludes(step, each)) is not None
            )
            left_out = next(excluded, None)
            if left_out is None and self._with(each).mid < LEAST_GAIN * self._reached:
                left_out = LeftOut(0, last, False, "it brings nothing more")
            if left_out is None and share and share >= COMPUTES and each.effort:
                left_out = LeftOut(0, last, False, f"the loop then {_computes(share)}")
            if left_out is not None:
                self._open.remove(each)
                self.left.append((each, left_out))

    def _choice(self) -> Option:
        """The next step: what gains most, or what takes less effort and is needed anyway, or gains
        nearly as much. Of work that need not be done, if that gains enough."""
        gain, candidates = self._gain, self._open
        waste = [each for each in candidates if each.removes_work]
        gained = max(map(gain, waste), default=0.0)
        if waste and gained >= WASTE_FIRST * max(map(gain, candidates)):
            # Workers that start again in each epoch are waste too, if that gains as much.
            candidates = [
                each
                for each in candidates
                if each in waste
                or (each.advice.rule == "persistent-workers" and gain(each) >= gained)
            ]
        best = max(candidates, key=gain)
        most = gain(best)
        easier = [each for each in candidates if each.effort < best.effort]
        for each in sorted(easier, key=lambda each: (each.effort, -gain(each))):
            if gain(each) >= NEARLY * most or (
                gain(each) >= HALF * most
                and excludes(each, best) is None
                and gain(best, each) >= most + math.log(LEAST_GAIN)
            ):
                return each
        return best

    def _gain(self, *more: Option) -> float:
        """The logarithm of what these add to the steps made so far."""
        return math.log(max(1e-9, self._with(*more).mid / self._reached))

    def _with(self, *more: Option) -> Range:
        """What the steps made so far and these come to together."""
        options = [*(each for each, _ in self.taken), *more]
        key = tuple(sorted(map(id, options)))
        if key not in self._known:
            self._known[key] = self._predicted(options)
        return self._known[key]

    def _predicted(self, options: list[Option]) -> Range:
        if len(options) == 1:
            return options[0].advice.predicted
        asked: dict[str, Any] = {}
        for each in options:
            asked = together(asked, each.changes or {})
        found: Range = self._case.predict(**asked) if asked else SAME
        for own in (each.advice.predicted for each in options if each.changes is None):
            found = Range(found.low * own.low, found.mid * own.mid, found.high * own.high)
        return capped(found, self._case.report, self._besides(options))

    def _besides(self, options: Sequence[Option]) -> float:
        """What goes with loading goes once, whatever makes that shorter."""
        return sum(each.beside_loading for each in options)

    def computing(self, steps: int) -> float | None:
        """The part of the time the loop computes after so many steps; None if that is not known."""
        headroom = self._case.report.headroom
        if headroom is None:
            return None
        free = _free(1 / headroom - self._besides([each for each, _ in self.taken[:steps]]))
        # Where most of what free loading leaves goes too, what is left is a difference of two
        # figures that are nearly the same.
        known = free <= MOSTLY_GONE * headroom
        return min(1.0, self.taken[steps - 1][1].mid / free) if known else None

    def stop(self) -> str | None:
        share = self.computing(len(self.taken)) if self.taken else None
        if share is None:
            return None
        if share >= COMPUTES:
            return f"the loop {_computes(share)}: stop there."
        return f"the loop still waits {percent(1 - share)} of the time; no further change is known."


def _computes(share: float) -> str:
    part = "nearly all" if share >= NEARLY_ALL else percent(share)
    return f"computes {part} of the time"


def excludes(one: Option, other: Option) -> str | None:
    """Why both cannot be made, in words; None if they can."""
    own = one.advice.change.params
    for name, value in other.advice.change.params.items():
        if own.get(name, value) != value:
            return f"both set {name}"
    if one.advice.effort == other.advice.effort == "a conversion":
        return "both store the data again"
    try:
        together(*(_workers_and(each) for each in (one, other)))
    except Excluded as why:
        return str(why)
    return None


def _workers_and(option: Option) -> dict[str, Any]:
    params = option.advice.change.params
    return {name: params[name] for name in ("num_workers",) if name in params} | dict(
        option.changes or {}
    )


def capped(predicted: Range, report: LoaderReport, besides: float) -> Range:
    """The range, held below what the loop gains if loading were free, and with it `besides`, a
    share of a step (unknown: as it is). Its lower end by the least that this is within the interval
    of what was lost; its middle, by the headroom that the report states; its upper end, as far as
    the loop's own time is sure to stay."""
    if report.headroom is None:
        return predicted
    left, basis = 1 / report.headroom - besides, report.basis
    unsure = max(0.0, (basis.stall_share or 0.0) - (basis.stall_share_low or 0.0))
    return Range(
        min(predicted.low, _free(left + unsure)),
        min(predicted.mid, _free(left)),
        min(predicted.high, less_sure(_free(left))),
    )


def _free(left: float) -> float:
    """The factor if this share of a step is left."""
    return max(1.0, 1 / max(1e-3, left))
