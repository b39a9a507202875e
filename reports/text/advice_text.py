"""The advice of a report, as lines for a terminal: what to change, what would not help, what could
not be judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from ...advisors.schema.evidence import Figure
from ...advisors.schema.report_model import LoaderReport, Recommendation, Report
from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean
from ..words.advice_words import effect_text
from ..words.plan_words import PlanRow, plan_rows, plan_summary
from ..words.reasons import by_reason
from ..words.sentences import nothing_to_change
from ..words.units import figure
from .layout import hanging, heading, indented
from .terminal import fitting_width, printed

# Of a text that comes from the run; code is shown whole.
MAX_CODE_LINE = 100_000
EVIDENCE_SHOWN = 6
BODY = 5  # where text begins, after "  1. "

MARKS = {"correctness": "bold red", "safety": "bold yellow"}


def render_advice(
    report: Report, number: int, width: int = 80, color: bool = False, unicode: bool = True
) -> str:
    """One recommendation in full, of each loader that has so many. Raises UsageError where none
    has."""
    parts: list[RenderableType] = []
    for loader in report.costliest:
        for row in plan_rows(loader):
            if row.number == number:
                parts += [Text(clean(loader.name, 60), style="bold"), *advice_in_full(row)]
    if not parts:
        most = max((len(each.recommendations) for each in report.loaders), default=0)
        raise UsageError(
            f"there is no advice {number}: " + (f"it has {most}" if most else "nothing is advised")
        )
    return printed(parts[:-1], fitting_width(width), color, unicode)


def advice_lines(loader: LoaderReport) -> Iterator[RenderableType]:
    """Everything the rules said of a loader, each part under its heading, an empty line after
    each."""
    if loader.recommendations:
        yield heading("What to change")
        for row in plan_rows(loader):
            yield from advice_in_full(row)
        summary = plan_summary(loader)
        if summary:
            yield indented(summary, "bold")
            yield Text("")
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


def advice_in_full(row: PlanRow) -> Iterator[RenderableType]:
    """One recommendation with its evidence and its code, an empty line after it."""
    advice = row.advice
    yield hanging(f"{row.number}.", advice_title(row))
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


def advice_title(row: PlanRow) -> Text:
    """What to change, what that does, what it takes, and by which rule."""
    rule = Text(f"  [{clean(row.advice.rule, 40)}]", style="dim")
    return Text.assemble(what_to_change(row), what_it_does(row), rule)


def what_to_change(row: PlanRow) -> Text:
    advice = row.advice
    title = Text()
    if advice.kind in MARKS:
        title.append(f"{advice.kind}: ", style=MARKS[advice.kind])
    return title.append(clean(advice.title, 200), style="dim" if row.left_out else "bold")


def what_it_does(row: PlanRow, brief: bool = False) -> Text:
    """Its effect, and the effort it takes, or why the plan does without it."""
    effect, last = row.effect, row.left_out or row.effort
    if brief:
        effect = effect.removeprefix("predicted ").partition("; predicted")[0]
        last = last.partition(":")[0]
    found = Text()
    if effect:
        found.append(f"  {effect}", style="green")
    return found.append(f"  {last}" if last else "")


def _rejected(advice: Recommendation) -> Text:
    line = Text.assemble((clean(advice.title, 200), "bold"))
    effect = effect_text(advice)
    if effect:
        line.append(f" {effect}")
    return line.append(f": {clean(advice.why)}")


def _evidence(evidence: Mapping[str, Figure]) -> str:
    shown = [
        f"{clean(name, 60)} {figure(value)[:60]}"
        for name, value in list(evidence.items())[:EVIDENCE_SHOWN]
    ]
    return " · ".join(shown)


def code_block(code: str) -> Group:
    """Code to paste: one line of it a line, whatever the width. (In a group, since rich joins texts
    printed alone.)"""
    lines = (
        clean(line.expandtabs(4), MAX_CODE_LINE).rstrip() for line in code.strip("\n").split("\n")
    )
    return Group(
        *(Text(" " * BODY + line, style="cyan", no_wrap=True, overflow="ignore") for line in lines)
    )
