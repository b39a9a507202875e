"""The report in ten seconds: the verdict, what to do first with its code, where the time went. It
fits the lines it is given: first the table of stages gets shorter, then it goes; code that has no
room even so is named instead of shown."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...advisors.schema.report_model import LoaderReport, Report, RunInfo
from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean
from ..document.advice import body, card, tuned_blocks
from ..document.blocks import Block, Code, Part, Section, Sentence, section, sentences
from ..document.report import NOTHING, lead
from ..document.stages import stage_table, waiting_line, waiting_sentences
from ..words.plan_words import PlanRow, plan_rows, plan_summary
from ..words.ranks import rank_sentences, title_of
from ..words.sentences import nothing_to_change, overhead_line, throughput_line
from ..words.system_words import machine_line
from ..words.tuned_words import tuned_lead
from ..words.units import plural
from .draw import print_sections
from .text import MAX_LOADERS

# Lines for one loader, and for each further one.
MOST_LINES = 40
MORE_LINES = 8
# After `loaderscope run`, below what the script wrote.
AFTER_RUN = 25
OTHERS_SHOWN, FURTHER_SHOWN = 4, 3
NOTES = 2
_BLANK_LINES = re.compile(r"\n{3,}")  # one says as much as two


@dataclass(frozen=True)
class _Form:
    """How much is said: the least share of a stage in the table, whether code is shown, and what
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

    It leads with what tuning found, unless the reader has seen that already (`tuned`).
    """
    room = most + MORE_LINES * (min(len(report.loaders), MAX_LOADERS) - 1)
    text = ""
    for form in _FORMS:
        text = print_sections(_sections(report, form, tuned), width, color, unicode, gaps=False)
        if text.count("\n") <= room:
            break
    return text


def render_advice(
    report: Report, number: int, width: int = 80, color: bool = False, unicode: bool = True
) -> str:
    """One recommendation in full, of each loader that has so many. Raises UsageError where none
    has."""
    rows = [(loader, plan_rows(loader)[number - 1 : number]) for loader in report.costliest]
    found = [
        Section("", [Part(clean(loader.name, 60), [card(row, full=True)])])
        for loader, each in rows
        for row in each
    ]
    if not found:
        most = max((len(each.recommendations) for each in report.loaders), default=0)
        has = f"it has {most}" if most else "nothing is advised"
        raise UsageError(f"there is no advice {number}: {has}")
    return print_sections(found, width, color, unicode)


def _sections(report: Report, form: _Form, tuned: bool) -> Iterator[Section]:
    yield section("", "", sentences(report.missing, "warning"))
    several = len({each.pid for each in report.loaders}) > 1
    loaders = report.costliest[:MAX_LOADERS]
    for number, loader in enumerate(loaders):
        parts = _further(loader, tuned) if number else _first(loader, form, tuned)
        yield Section(title_of(loader, several), list(parts), "", loader.verdict)
    more = len(report.loaders) - len(loaders)
    rest = f"… and {more} more loaders: --format json has them all" if more else None
    yield section("", "", sentences([rest, None if loaders else NOTHING]))
    machine = (machine_line(report.system), overhead_line(report.overhead))
    others = any(len(each.recommendations) > 1 for each in loaders)
    one = " · one piece of advice: --advice 2" if others else ""
    ending = (_run_line(report.run), f"everything: loaderscope report --full{one}")
    facts = sentences([*machine, *report.notes[:NOTES], *ending], "dim", True)
    yield section("", "", facts)


def _run_line(run: RunInfo) -> str:
    parts = [f"run {clean(run.id, 60)}", run.state]
    if run.processes > 1:
        parts.append(f"{run.processes} processes")
    if run.argv:
        parts.append(clean(" ".join(run.argv), 60))
    for label, version in (("torch", run.torch), ("Python", run.python)):
        if version:
            parts.append(f"{label} {clean(version, 30)}")
    return " · ".join(parts)


def _first(loader: LoaderReport, form: _Form, tuned: bool) -> Iterator[Part]:
    """The loader that costs most."""
    throughput = throughput_line(loader) if form.least is not None or not form.code else None
    head = [*(tuned_blocks(loader) if tuned else []), *lead(loader, limit=False)]
    ranks = sentences(rank_sentences(loader)[:1])
    yield Part("", [*head, *ranks, *sentences([throughput], "dim", True)])
    yield from _steps(loader, form)
    if form.least is not None:
        yield Part("Where each batch's time goes", stage_table(loader, form.least))
    waiting = waiting_line(loader)
    more = waiting_sentences(loader) if waiting and form.details else ()
    yield Part("", sentences([waiting, *more]))


def _steps(loader: LoaderReport, form: _Form) -> Iterator[Part]:
    rows = plan_rows(loader)
    if not rows:
        yield Part("", sentences([nothing_to_change(loader)], "strong"))
        return
    first, *others = rows
    shown = others if len(others) <= OTHERS_SHOWN else others[: OTHERS_SHOWN - 1]
    steps = [
        replace(card(first), body=list(_body(first, form))),
        *map(card, shown),
        *_more(others, shown),
    ]
    yield Part("What to do", [*steps, *sentences([plan_summary(loader)], "strong")])


def _more(rows: list[PlanRow], shown: list[PlanRow]) -> list[Block]:
    more = len(rows) - len(shown)
    said = f"   … and {more} more: loaderscope report --full" if more else None
    return sentences([said], "dim", True)


def _body(row: PlanRow, form: _Form) -> Iterator[Block]:
    """Why, with the code, or where that is."""
    why, *details = body(row.advice)
    if form.details:
        yield why
    code = next((each.text for each in details if isinstance(each, Code)), "")
    if code and form.code:
        shorter = _without_blank_lines(code) if form.least is None else ""
        yield Code(shorter or _BLANK_LINES.sub("\n\n", code))
    elif code:
        lines = plural(len(code.strip().splitlines()), "line", "lines")
        where = f"Its code, {lines}: loaderscope report --advice {row.number}"
        yield Sentence(where, "code", True)
    if form.details:
        yield from (each for each in details if isinstance(each, Sentence))


def _without_blank_lines(code: str) -> str:
    """The same program in fewer lines; as it was where that cannot be said."""
    shorter = "\n".join(line for line in code.split("\n") if line.strip())
    try:
        same = ast.dump(ast.parse(shorter)) == ast.dump(ast.parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code
    return shorter if same else code


def _further(loader: LoaderReport, tuned: bool) -> Iterator[Part]:
    """Any other loader, in MORE_LINES with its title."""
    shown, found = FURTHER_SHOWN, None
    if tuned and loader.tuning is not None:
        shown -= 1
        found = f"Tuned: {'; '.join(tuned_lead(loader.tuning)[:2])}"
    rows = plan_rows(loader)
    said = (plan_summary(loader) if rows else nothing_to_change(loader), waiting_line(loader))
    yield Part(
        "",
        [
            *sentences([found], fit=True),
            Sentence(loader.basis.sentence, "strong", True),
            *map(card, rows[:shown]),
            *_more(rows, rows[:shown]),
            *sentences(said, fit=True),
        ],
    )
