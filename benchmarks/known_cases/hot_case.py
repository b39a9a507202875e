"""What a case of a planted hot function is: the loop, its better alternative, and how the function
must be named."""

from __future__ import annotations

import linecache
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from loaderscope.advisors.schema.report_model import CodeStage, HotSpot, LoaderReport

from .case import Case

RULE = "hot-function"
# A planted function dominates its stage: it must be among the first few by its own samples, or hold
# at least this part with what it calls.
FIRST = 3
DOMINANT = 0.4


@dataclass(frozen=True)
class Spot:
    """Where the samples must lie: in one of `functions` (any, where there are none) of one of
    `libraries`; or, where compiled code is called straight from the user's own, at a line of it
    that contains `line`."""

    libraries: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    line: str | None = None

    def matches(self, found: HotSpot) -> bool:
        name = found.function.rpartition(".")[2]
        if found.own:
            source = (
                linecache.getline(found.file, found.line)
                if found.file is not None and found.line
                else ""
            )
            return name in self.functions or (self.line is not None and self.line in source)
        return found.library in self.libraries and (not self.functions or name in self.functions)

    def is_named(self, stage: CodeStage | None) -> bool:
        """Whether the report puts it in front."""
        if stage is None:
            return False
        front = sorted(stage.hot, key=lambda each: -each.share)[:FIRST]
        dominant = [each for each in (*stage.hot, *stage.lines) if each.total_share >= DOMINANT]
        return any(self.matches(each) for each in (*front, *dominant))


@dataclass(frozen=True, kw_only=True)
class Hot(Case):
    """One case. `build(folder=…)` makes the loop as found with its files below that folder,
    `better=True` the loop with the better alternative.

    `spot` is where the report must see the time, `words` what the rule must say of it (one of
    them). Where `known` is false no better alternative can be known to an advisor, and naming the
    place is all that is asked. `tolerance` is the greatest mean difference of the values of two
    equal samples, None where only shapes and types are the same.
    """

    fix: Mapping[str, Any] = field(default_factory=lambda: {"better": True})
    spot: Spot
    words: tuple[str, ...]
    known: bool = True
    tolerance: float | None = 0.0

    def judged(self, loader: LoaderReport) -> dict[str, Any]:
        """What the report says of the planted function, and whether that names it."""
        stage = loader.code.stages.get("fetch") if loader.code is not None else None
        outcome, text, first = outcome_of(loader, RULE)
        seen = self.spot.is_named(stage)
        told = any(word.lower() in text.lower() for word in self.words)
        return {
            "reason": None
            if loader.code is not None and stage is not None
            else why_no_code(loader),
            "samples": stage.samples if stage is not None else 0,
            "hot": [spoken(each) for each in stage.hot[:5]] if stage is not None else [],
            "lines": [spoken(each) for each in stage.lines[:3]] if stage is not None else [],
            "seen": seen,
            "outcome": outcome,
            "text": text,
            "told": told,
            "predicted": first,
            "named": told and (outcome == "recommended" or not self.known),
            "ok": seen and told and (outcome == "recommended" or not self.known),
        }


def outcome_of(loader: LoaderReport, rule: str) -> tuple[str, str, dict[str, float] | None]:
    """What a rule came to, in which words, and the gain it predicts."""
    for outcome, said in (("recommended", loader.recommendations), ("rejected", loader.rejected)):
        for each in said:
            if each.rule == rule:
                evidence = "; ".join(f"{name}: {value}" for name, value in each.evidence.items())
                ends = {
                    "low": each.predicted.low,
                    "mid": each.predicted.mid,
                    "high": each.predicted.high,
                }
                return outcome, f"{each.title}. {each.why} {evidence}", ends
    if rule in loader.unmeasured:
        return "unmeasured", loader.unmeasured[rule], None
    return "silent", "", None


def why_no_code(loader: LoaderReport) -> str:
    if loader.code is None:
        return "no stacks in the report"
    return (
        loader.code.reason
        or f"no samples of fetch, only of {', '.join(loader.code.stages) or 'nothing'}"
    )


def spoken(found: HotSpot) -> str:
    where = "own" if found.own else found.library or "?"
    source = (
        f" [{linecache.getline(found.file, found.line).strip()[:50]}]"
        if found.own and found.file
        else ""
    )
    return (
        f"{where}:{found.function}:{found.line} {found.share:.0%} of "
        f"{found.total_share:.0%}{source}"
    )
