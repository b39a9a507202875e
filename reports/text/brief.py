"""The report in ten seconds: the verdict, what to do first with its code, where the time went. It
fits the lines it is given: first the table of stages gets shorter, then it goes; code that has no
room even so is named instead of shown."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import RenderableType
from rich.text import Text

from ...advisors.schema.report_model import LoaderReport, Report
from ...profiler.base.metadata import clean
from ..words.plan_words import PlanRow, plan_rows, plan_summary
from ..words.ranks import rank_sentences
from ..words.sentences import headroom_sentence, nothing_to_change, overhead_line, throughput_line
from ..words.system_words import machine_line
from ..words.tuned_words import tuned_lead
from ..words.units import plural
from .advice_text import code_block, what_it_does, what_to_change
from .layout import heading, indented, one_line
from .stages_text import stage_lines, waiting_line, waiting_sentences
from .terminal import fitting_width, printed
from .text import MAX_LOADERS, run_line, title_line
from .tuned_text import lead_lines

# Lines for one loader, and for each further one.
MOST_LINES = 40
MORE_LINES = 8
# After `loaderscope run`, below what the script wrote.
AFTER_RUN = 25
OTHERS_SHOWN, FURTHER_SHOWN = 4, 3
NOTES = 2
BODY = 5
_BLANK_LINES = re.compile(r"\n{3,}")  # one says as much as two


@dataclass(frozen=True)
class _Form:
    """How much is told: the least share of a stage in the table, whether code is shown, and what
    goes with it."""

    least: float | None
    code: bool
    details: bool


_FORMS = (
    _Form(0.01, True, True),
    _Form(0.1, True, True),
    _Form(0.1, True, False),
    _Form(0.25, True, False),
    _Form(None, True, False),
    _Form(0.01, False, True),
    _Form(0.1, False, True),
    _Form(0.1, False, False),
    _Form(None, False, False),
)


def render_brief(
    report: Report,
    width: int = 80,
    color: bool = False,
    unicode: bool = True,
    most: int = MOST_LINES,
    tuned: bool = True,
) -> str:
    """What matters of the report, in at most `most` lines and MORE_LINES for each further loader.
    See `render_text`.

    It leads with what tuning found, unless that was told before (`tuned`).
    """
    width = fitting_width(width)
    room = most + MORE_LINES * (min(len(report.loaders), MAX_LOADERS) - 1)
    text = ""
    for form in _FORMS:
        text = printed(_parts(report, width, form, tuned), width, color, unicode)
        if text.count("\n") <= room:
            break
    return text


def _parts(report: Report, width: int, form: _Form, tuned: bool) -> Iterator[RenderableType]:
    for sentence in report.missing:
        yield Text(clean(sentence), style="bold red")
    if report.missing:
        yield Text("")
    several = len({each.pid for each in report.loaders}) > 1
    loaders = report.costliest[:MAX_LOADERS]
    for number, loader in enumerate(loaders):
        yield one_line(title_line(loader, several), width, by=0)
        if tuned and not number:
            yield from lead_lines(loader)
        yield from _further(loader, width, tuned) if number else _first(loader, width, form)
    if len(report.loaders) > MAX_LOADERS:
        yield Text(
            f"… and {len(report.loaders) - MAX_LOADERS} more loaders: --format json has them all"
        )
    if not loaders:
        yield Text("Nothing to report: no loader was recorded.", style="bold")
    told = (
        machine_line(report.system),
        overhead_line(report.overhead),
        *map(clean, report.notes[:NOTES]),
    )
    yield from (one_line(line, width, "dim") for line in told if line)
    yield one_line(run_line(report.run), width, by=0)
    one = (
        " · one piece of advice: --advice 2"
        if any(len(each.recommendations) > 1 for each in loaders)
        else ""
    )
    yield one_line(f"everything: loaderscope report --full{one}", width, "dim", by=0)


def _first(loader: LoaderReport, width: int, form: _Form) -> Iterator[RenderableType]:
    """The loader that costs most."""
    yield indented(clean(loader.basis.sentence), "bold")
    if loader.verdict != "too-short":
        yield indented(headroom_sentence(loader))
    yield from (indented(sentence) for sentence in rank_sentences(loader)[:1])
    if form.least is not None or not form.code:
        yield one_line(throughput_line(loader), width, "dim")
    yield from _advice(loader, width, form)
    if form.least is not None and any(stage.count for stage in loader.stages.values()):
        yield heading("Where each batch's time goes")
        yield from stage_lines(loader, width, form.least)
    waiting = waiting_line(loader)
    if waiting:
        yield indented(waiting)
        if form.details:
            yield from (indented(each) for each in waiting_sentences(loader))


def _advice(loader: LoaderReport, width: int, form: _Form) -> Iterator[RenderableType]:
    rows = plan_rows(loader)
    if not rows:
        nothing = nothing_to_change(loader)
        if nothing:
            yield indented(nothing, "bold")
        return
    yield heading("What to do")
    first, *others = rows
    yield from _step_in_full(first, width, form)
    shown = others if len(others) <= OTHERS_SHOWN else others[: OTHERS_SHOWN - 1]
    yield from (_step(row, width) for row in shown)
    if len(others) > len(shown):
        yield one_line(
            f"… and {len(others) - len(shown)} more: loaderscope report --full", width, "dim", BODY
        )
    summary = plan_summary(loader)
    if summary:
        yield indented(summary, "bold")


def _step_in_full(row: PlanRow, width: int, form: _Form) -> Iterator[RenderableType]:
    """The first step: why, with its code, or where that is."""
    advice = row.advice
    yield _step(row, width)
    if form.details:
        yield indented(clean(advice.why), by=BODY)
    lines = len(advice.change.code.strip().splitlines())
    if form.code and lines:
        code = advice.change.code
        yield code_block(
            _without_blank_lines(code) if form.least is None else _BLANK_LINES.sub("\n\n", code)
        )
    elif lines:
        pointer = (
            f"Its code, {plural(lines, 'line', 'lines')}: loaderscope report --advice {row.number}"
        )
        yield one_line(pointer, width, "cyan", BODY)
    if advice.caveat and form.details:
        yield indented(f"But: {clean(advice.caveat)}", by=BODY)


def _without_blank_lines(code: str) -> str:
    """The same program in fewer lines; as it was where that cannot be said."""
    shorter = "\n".join(line for line in code.split("\n") if line.strip())
    try:
        same = ast.dump(ast.parse(shorter)) == ast.dump(ast.parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code
    return shorter if same else code


def _step(row: PlanRow, width: int) -> Text:
    """A step, or what the plan leaves out, in one line."""
    title = Text.assemble(f"{row.number}. ", what_to_change(row))
    return one_line(title, width, tail=what_it_does(row, brief=True))


def _further(loader: LoaderReport, width: int, tuned: bool) -> Iterator[RenderableType]:
    """Any other loader, in MORE_LINES with its title."""
    shown = FURTHER_SHOWN
    if tuned and loader.tuning is not None:
        shown -= 1
        yield one_line(f"Tuned: {'; '.join(tuned_lead(loader.tuning)[:2])}", width)
    yield one_line(clean(loader.basis.sentence), width, "bold")
    rows = plan_rows(loader)
    yield from (_step(row, width) for row in rows[:shown])
    if len(rows) > shown:
        yield one_line(
            f"… and {len(rows) - shown} more: loaderscope report --full", width, "dim", BODY
        )
    told = (plan_summary(loader) if rows else nothing_to_change(loader), waiting_line(loader))
    yield from (one_line(text, width) for text in told if text)
