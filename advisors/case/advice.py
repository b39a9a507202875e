"""What a rule may answer: a change, what it does and why, or that it could not be judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..schema.report_model import Change, Effort, Range, Recommendation, Scalar
from .code_text import with_imports

Kind = Literal["speed", "correctness", "safety"]

SAME = Range(1.0, 1.0, 1.0)
# loadtune: of several numbers, the smallest that gains within 2 % of the best.
WITHIN = 1.02


@dataclass(frozen=True)
class Advice:
    """A rule's finding: what to change and what that does.

    `evidence` maps a name to "value unit". `predicted` is the factor on batches a second end to end
    (`SAME` for correctness and safety rules that do not change speed), `asked` what the what-if
    model was asked for it: None where the range was found in another way. `code` gets the imports
    it lacks. With `rejected`, the same words say why the change would not help, or would hurt. The
    engine rejects a speed finding whose gain is not certain enough by itself. `beside_loading` is
    the share of a step that the finding is about, beside loading (copies to the device, say):
    training that computes all the time may still win that.
    """

    title: str
    why: str
    evidence: Mapping[str, str]
    predicted: Range
    code: str
    params: Mapping[str, Scalar] = field(default_factory=dict)
    caveat: str | None = None
    rejected: bool = False
    kind: Kind | None = None  # None: the rule's own
    beside_loading: float = 0.0
    effort: Effort | None = None  # None: the rule's own
    asked: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", with_imports(self.code))

    def recommendation(self, rule: str, kind: Kind, effort: Effort | None = None) -> Recommendation:
        return Recommendation(
            rule=rule,
            title=self.title,
            why=self.why,
            evidence=dict(self.evidence),
            predicted=self.predicted,
            measured=None,
            change=Change(dict(self.params), self.code),
            caveat=self.caveat,
            doc=f"loaderscope rules {rule}",
            kind=self.kind or kind,
            effort=self.effort or effort,
        )


@dataclass(frozen=True)
class Proposal:
    """A change, what it does to the loop, and the code that makes it: the fields of `Advice` that
    are not words."""

    predicted: Range
    code: str
    params: Mapping[str, Scalar]
    asked: Mapping[str, Any] | None

    def advise(
        self,
        title: str,
        why: str,
        evidence: Mapping[str, str],
        *,
        caveat: str | None = None,
        kind: Kind | None = None,
        beside_loading: float = 0.0,
        effort: Effort | None = None,
    ) -> Advice:
        """The advice to make this change."""
        return Advice(
            title,
            why,
            evidence,
            **vars(self),
            caveat=caveat,
            kind=kind,
            beside_loading=beside_loading,
            effort=effort,
        )

    def would_not_help(
        self, why: str, evidence: Mapping[str, str], *, title: str | None = None
    ) -> Advice:
        """The statement that this change gains nothing; without a title, by the arguments it
        sets."""
        names = ", ".join(f"{name}={value!r}" for name, value in self.params.items())
        return Advice(
            title or f"{names} would not help", why, evidence, **vars(self), rejected=True
        )


def smallest(options: Mapping[int, Proposal]) -> tuple[int, float]:
    """Of the numbers that an argument may be set to, the smallest within 2 % of the best; and the
    best factor."""
    best = max(option.predicted.mid for option in options.values())
    return min(
        number for number, option in options.items() if option.predicted.mid * WITHIN >= best
    ), best


@dataclass(frozen=True)
class Unmeasured:
    """The rule cannot say: what it would need to know was not measured, and how to measure it."""

    reason: str


Outcome = Advice | Unmeasured
