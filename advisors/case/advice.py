"""What a rule may answer: a change, what it does and why, or that it could not be judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ...profiler.base.metadata import Scalars
from ..schema.evidence import Evidence, measured
from ..schema.gains import LEAST_GAIN
from ..schema.report_model import Change, Effort, Range, Recommendation
from .code_text import defines, with_imports

Kind = Literal["speed", "correctness", "safety"]

WOULD_NOT_HELP = "would not help"
SAME = Range(1.0, 1.0, 1.0)
# loadtune: of several numbers, the smallest that gains within 2 % of the best.
WITHIN = 1.02
NOT_RUN = "The code was not run on these data."


@dataclass(frozen=True)
class Advice:
    """A change and, once a rule has put it into words, what the rule says about it.

    `predicted` is the factor on batches per second, end to end. It is `SAME` for correctness and
    safety rules that do not change speed. `asked` is what the what-if model was asked for it; None
    if the range was found in another way. With `rejected`, the words say why the change would not
    help. `beside_loading` is the share of a step that the change is about besides loading, such as
    copies to the device: a loop that computes all the time may still gain that. A `kind` or
    `effort` of None is the rule's own. With `by_hand`, what costs is known and no remedy: the gain
    may be anything in the range.
    """

    title: str
    why: str
    evidence: Evidence
    predicted: Range
    code: str
    params: Scalars = field(default_factory=dict)
    caveat: str | None = None
    rejected: bool = False
    kind: Kind | None = None
    beside_loading: float = 0.0
    effort: Effort | None = None
    asked: Mapping[str, Any] | None = None
    by_hand: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", with_imports(self.code))

    @property
    def gains(self) -> bool:
        """Whether the middle of the range is a gain."""
        return self.predicted.mid >= LEAST_GAIN

    def advise(self, title: str, why: str, evidence: Evidence, **more: Any) -> Advice:
        """The advice to make this change. `more` sets other fields."""
        return replace(self, title=title, why=why, evidence=measured(evidence), **more)

    def would_not_help(self, why: str, evidence: Evidence, *, title: str | None = None) -> Advice:
        """The statement that this change gains nothing. The default title names its arguments."""
        names = ", ".join(f"{name}={value!r}" for name, value in self.params.items())
        return self.advise(title or f"{names} {WOULD_NOT_HELP}", why, evidence, rejected=True)

    def recommendation(self, rule: str, kind: Kind, effort: Effort | None = None) -> Recommendation:
        ran = NOT_RUN if defines(self.code) and not self.rejected else None
        return Recommendation(
            rule=rule,
            title=self.title,
            why=self.why,
            evidence=measured(self.evidence),
            predicted=self.predicted,
            measured=None,
            change=Change(dict(self.params), self.code),
            caveat=" ".join(filter(None, (self.caveat, ran))) or None,
            doc=f"loaderscope rules {rule}",
            kind=self.kind or kind,
            effort=self.effort or effort,
        )


def smallest(options: Mapping[int, Advice]) -> tuple[int, float]:
    """The smallest number within 2 % of the best, and the best factor."""
    best = max(option.predicted.mid for option in options.values())
    return min(n for n, option in options.items() if option.predicted.mid * WITHIN >= best), best


@dataclass(frozen=True)
class Unmeasured:
    """The rule cannot say: what it needs to know was not measured, and how to measure it."""

    reason: str


Outcome = Advice | Unmeasured
Outcomes = Iterator[Outcome]
