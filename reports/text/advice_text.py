"""The advice of a report, as lines for a terminal: what to change, what would not help, what could not be judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from ...advisors.schema.report_model import LoaderReport, Recommendation
from ...profiler.base.metadata import clean
from ..words.advice_words import effect_text
from ..words.reasons import by_reason
from ..words.sentences import nothing_to_change
from .layout import hanging, heading, indented

# Of a text that comes from the run; code is shown whole.
MAX_CODE_LINE = 100_000
EVIDENCE_SHOWN = 6
BODY = 5  # where text begins, after "  1. "

MARKS = {"correctness": "bold red", "safety": "bold yellow"}


def advice_lines(loader: LoaderReport) -> Iterator[RenderableType]:
    """Everything the rules said of a loader, each part under its heading, an empty line after each."""
    if loader.recommendations:
        yield heading("What to change")
        for number, each in enumerate(loader.recommendations, 1):
            yield from _recommendation(number, each)
    else:
        nothing = nothing_to_change(loader)
        if nothing:
            yield indented(nothing, "bold")
            yield Text("")
    if loader.rejected:
        yield heading("What would not help")
        for each in loader.rejected:
            yield hanging("·", _rejected(each))
        yield Text("")
    if loader.unmeasured:
        unjudged = (f"{rules} ({reason})" for rules, reason in by_reason(loader.unmeasured.items()))
        yield indented("not judged: " + "; ".join(unjudged), "dim")
        yield Text("")


def _recommendation(number: int, advice: Recommendation) -> Iterator[RenderableType]:
    yield hanging(f"{number}.", _title(advice))
    yield indented(clean(advice.why), by=BODY)
    if advice.evidence:
        yield indented(_evidence(advice.evidence), "dim", by=BODY)
    if advice.change.code.strip():
        yield Text("")
        yield code_block(advice.change.code)
    if advice.caveat:
        yield Text("")
        yield indented(f"But: {clean(advice.caveat)}", by=BODY)
    yield Text("")


def _title(advice: Recommendation) -> Text:
    title = Text(style="bold")
    if advice.kind in MARKS:
        title.append(f"{advice.kind}: ", style=MARKS[advice.kind])
    title.append(clean(advice.title, 200))
    effect = effect_text(advice)
    if effect:
        title.append(f"  {effect}", style="green")
    title.append(f"  [{clean(advice.rule, 40)}]", style="not bold dim")
    return title


def _rejected(advice: Recommendation) -> Text:
    line = Text.assemble((clean(advice.title, 200), "bold"))
    effect = effect_text(advice)
    if effect:
        line.append(f" {effect}")
    return line.append(f": {clean(advice.why)}")


def _evidence(evidence: Mapping[str, str]) -> str:
    shown = [f"{clean(name, 60)} {clean(value, 60)}" for name, value in list(evidence.items())[:EVIDENCE_SHOWN]]
    return " · ".join(shown)


def code_block(code: str) -> Group:
    """Code to paste: one line of it a line, whatever the width. (In a group, since rich joins texts printed alone.)"""
    lines = (clean(line.expandtabs(4), MAX_CODE_LINE).rstrip() for line in code.strip("\n").split("\n"))
    return Group(*(Text(" " * BODY + line, style="cyan", no_wrap=True, overflow="ignore") for line in lines))
