"""The report for a terminal: in full, or in ten seconds, which is the verdict, what to do first
with its code, and where the time went.

What is brief fits the lines it is given: first the table of stages goes, then the code, which is
named instead.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from ...advisors.schema.report_model import LoaderReport, Report
from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean
from ..document.advice import body, card, tuned_blocks
from ..document.blocks import Block, Card, Code, Part, Section, Sentence, section, sentences
from ..document.report import (
    MANY,
    MAX_LOADERS,
    groups_of,
    lead,
    report_sections,
    rest,
    run_rows,
    summary,
    title_of_group,
)
from ..document.stages import stage_table, waiting_line, waiting_sentences
from ..words.advice_words import PlanRow, plan_rows, plan_summary
from ..words.loaders import rank_sentences
from ..words.sentences import nothing_to_change, overhead_line, throughput_line
from ..words.system_words import machine_line
from ..words.tuned_words import tuned_lead
from ..words.units import plural
from .draw import print_sections

# Lines for one loader, and for each further one.
MOST_LINES = 40
MORE_LINES = 10
# After `loaderscope run`, below what the script wrote.
AFTER_RUN = 25
STEPS_SHOWN = 2
LEAST_STAGE = 0.1  # of a step: a stage in the table
NOTES = 2
RUN_FACTS = ("run", "state", "command", "torch", "Python")
_BLANK_LINES = re.compile(r"\n{3,}")  # one says as much as two


def render_text(report: Report, width: int = 80, color: bool = False) -> str:
    """All of the report: the verdict first, then where the time went."""
    return print_sections(report_sections(report), width, color)


# Whether the table of stages is shown, and the code.
_FORMS = ((True, True), (False, True), (False, False))


def render_brief(
    report: Report,
    width: int = 80,
    color: bool = False,
    most: int = MOST_LINES,
    tuned: bool = True,
) -> str:
    """What matters of the report, in at most `most` lines and MORE_LINES for each further loader.

    It leads with what tuning found, unless the reader has seen that already (`tuned`).
    """
    room = most + MORE_LINES * (min(len(groups_of(report)), MAX_LOADERS) - 1)
    text = ""
    for table, code in _FORMS:
        text = print_sections(_sections(report, table, code, tuned), width, color, gaps=False)
        if text.count("\n") <= room:
            break
    return text


def render_advice(report: Report, number: int, width: int = 80, color: bool = False) -> str:
    """One recommendation in full, of each loader that has it. Raises UsageError where none has."""
    rows = [(loader, plan_rows(loader)[number - 1 : number]) for loader in report.costliest]
    found = [
        Section("", [Part([card(row, full=True)], clean(loader.name, 60))])
        for loader, each in rows
        for row in each
    ]
    if not found:
        most = max((len(each.recommendations) for each in report.loaders), default=0)
        has = f"it has {most}" if most else "nothing is advised"
        raise UsageError(f"there is no advice {number}: {has}")
    return print_sections(found, width, color)


def _sections(report: Report, table: bool, code: bool, tuned: bool) -> Iterator[Section]:
    yield section(sentences(report.missing, "warning"))
    several = len({each.pid for each in report.loaders}) > 1
    groups = groups_of(report)
    yield summary(report, groups)
    # With many loaders, the table lists all and only the first is described.
    most = MAX_LOADERS if len(report.loaders) < MANY else 1
    several_steps = False
    for number, group in enumerate(groups[:most]):
        loader = group[0]
        parts = [_further(loader, tuned)] if number else _first(loader, table, code, tuned)
        title = title_of_group(group, several)
        yield Section(title, list(parts), "", loader.verdict)
        several_steps |= len(loader.recommendations) > 1
    yield rest(report, groups, MAX_LOADERS)
    known = dict(run_rows(report))
    if report.run.state == "live":  # a note says so; a loop in this process has just ended
        del known["state"]
    facts = (
        overhead_line(report.overhead),
        *report.notes[:NOTES],
        " · ".join(f"{name} {known[name]}" for name in RUN_FACTS if name in known),
        f"everything: loaderscope report --full{' · one step: --advice 2' * several_steps}",
    )
    machine = machine_line(report.system)
    # What others took of the machine is never cut.
    yield section([*sentences([machine], "dim"), *sentences(facts, "dim", True)])


def _first(loader: LoaderReport, table: bool, code: bool, tuned: bool) -> Iterator[Part]:
    """The loader that costs most."""
    head = [*(tuned_blocks(loader) if tuned else []), *lead(loader)]
    ranks = sentences(rank_sentences(loader)[:1])
    yield Part([*head, *ranks, *sentences([throughput_line(loader)], "dim", True)])
    rows = plan_rows(loader)
    if rows:
        yield Part(
            [_in_full(rows[0], code), *_steps(loader, rows[1:], 3 if table else 1)], "What to do"
        )
    else:
        yield Part(sentences([nothing_to_change(loader)], "strong"))
    if table:
        yield Part(stage_table(loader, LEAST_STAGE), "Where each batch's time goes")
    yield Part(sentences([waiting_line(loader), *(waiting_sentences(loader) if table else ())]))


def _further(loader: LoaderReport, tuned: bool) -> Part:
    """Any other loader, in MORE_LINES with its title."""
    rows, found = plan_rows(loader), None
    if tuned and loader.tuning:
        found = f"Tuned: {'; '.join(tuned_lead(loader.tuning)[:2])}"
    said = (nothing_to_change(loader) if not rows else None, waiting_line(loader))
    verdict = Sentence(loader.basis.sentence, "strong")
    steps = _steps(loader, rows, STEPS_SHOWN)
    return Part([*sentences([found]), verdict, *steps, *sentences(said)])


def _steps(loader: LoaderReport, rows: list[PlanRow], most: int) -> list[Block]:
    """Steps of a line each, how many more there are, and what they come to."""
    more = len(rows) - most
    said = f"   … and {more} more: loaderscope report --full" if more > 0 else None
    plan = sentences([plan_summary(loader)], "strong")
    return [*map(card, rows[:most]), *sentences([said], "dim", True), *plan]


def _in_full(row: PlanRow, code: bool) -> Card:
    """Why, with the code, or where that is."""
    blocks: list[Block] = []
    for each in body(row.advice):
        if isinstance(each, Code) and code:
            blocks.append(Code(_BLANK_LINES.sub("\n\n", each.text)))
        elif isinstance(each, Code):
            lines = plural(each.text.count("\n") + 1, "line")
            where = f"Its code, {lines}: loaderscope report --advice {row.number}"
            blocks.append(Sentence(where, "code", True))
        elif isinstance(each, Sentence):
            blocks.append(each)
    return replace(card(row), body=blocks)
