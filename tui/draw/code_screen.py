"""The sixth screen: the hottest functions and lines by stage, the transforms, and what is read."""

from __future__ import annotations

import textwrap

from textual.content import Content

from ...advisors.schema.report_model import LoaderReport
from ...reports.words.inside import (
    HotRow,
    basis_text,
    code_stages,
    hot_rows,
    own_lines,
    transform_rows,
)
from ...reports.words.storage_words import storage_rows
from ...reports.words.units import bar, percent, plural
from ..snapshot import Snapshot
from ..stack_requests import Taken
from .marks import BAD, DIM, FAIR, GOOD, MARK, dim, fitted, line, lines, text
from .needs import needs_advice, no_advice

FUNCTIONS = 8
OWN_LINES = 5
LEAST_SHARE = 0.005
BAR = 8
_SHARE = 8
_KINDS = {"yours": (FAIR, "▸"), "library": (MARK, " "), "compiled": (DIM, "·")}
_TAKEN = {None: FAIR, True: GOOD, False: BAD}


def status(s: Snapshot, width: int, height: int, taken: Taken | None = None) -> Content:
    """What the figures rest on, or why there are none; and what came of taking stacks."""
    report = s.advice.report
    if report is None:
        first = no_advice(s.advice)
    elif code_stages(report.code) and report.code is not None:
        first = dim(basis_text(report.code))
    else:
        why = report.code.reason if report.code is not None else None
        first = line((text(why), FAIR) if why else ("no stacks were taken", DIM))
    if taken is not None:
        second = (text(taken.said), f"bold {_TAKEN[taken.done]}")
    elif s.state == "live":
        second = ("s takes stacks now", DIM)
    else:
        second = ("recorded; stacks can be taken of a live run only", DIM)
    return lines([first, line(second)])


@needs_advice
def functions(report: LoaderReport, width: int, height: int) -> Content:
    """Each stage with its hottest functions: share with what they call, share themselves, name,
    place."""
    code, stages = report.code, code_stages(report.code)
    if not stages or code is None:
        return dim("no functions were seen")
    titles = f"{'share':>{_SHARE + 2}} {'itself':>{_SHARE}}"
    rows = [dim(f"{titles}  ▸ yours · compiled; the bar: with what it calls")]
    for name, stage in stages:
        gil = f" · GIL held {percent(stage.gil_share)}" if stage.gil_share is not None else ""
        samples = f"  {plural(stage.samples, 'sample', 'samples')}{gil}"
        rows.append(line((fitted(text(name, 20), 10), "bold underline"), (samples, DIM)))
        rows += [_row(row, width) for row in hot_rows(stage, LEAST_SHARE)[:FUNCTIONS]]
    return lines([*rows, *(line((part, FAIR)) for part in wrapped(code.reason or "", width))])


@needs_advice
def own(report: LoaderReport, width: int, height: int) -> Content:
    """The user's own lines by the share of their stage, with all that they call."""
    rows: list[Content] = []
    for name, stage in code_stages(report.code):
        found = own_lines(stage)[:OWN_LINES]
        rows += [line((text(name, 20), "bold"))] if found else []
        rows += [_row(row, width) for row in found]
    return lines(rows or [dim("none of your lines was seen")])


def _row(row: HotRow, width: int) -> Content:
    """One line. What does not fit is left out: first who called, then the end of the name."""
    style, mark = _KINDS[row.kind]
    alone = "" if row.line else f"{row.itself:>{_SHARE}} "
    left = width - _SHARE - BAR - len(alone) - 5
    name = fitted(row.code or row.name, left - len(row.where) - 2).rstrip()
    first, second = (row.where, name) if row.line else (name, row.where)
    came = f"  ← {row.caller}" if row.caller and not row.line else ""
    if len(first) + 2 + len(second) + len(came) > left:
        came = ""
    return line(
        (f"{mark} ", style),
        (f"{percent(row.fraction):>{_SHARE}} ", "bold"),
        (alone, DIM),
        (f"{bar(row.fraction, BAR)} ", style),
        (first, style if row.kind == "yours" else ""),
        (f"  {second}{came}", DIM),
    )


@needs_advice
def transforms(report: LoaderReport, width: int, height: int) -> Content:
    """The callables of the data set's chains: time a call, share of fetch."""
    found = report.transforms
    if not found:
        return dim("no chain of transforms was found")
    rows = [dim(f"{'a call':>10}{'of fetch':>10}")]
    room = width - 20 - BAR - 2
    for (name, mean, share, _, _), each in zip(transform_rows(found), found, strict=False):
        drawn, shown = bar(each.share, BAR), fitted(name, room).rstrip()
        rows.append(line(f"{mean:>10}", (f"{share:>10} ", "bold"), (drawn, MARK), f" {shown}"))
    return lines(rows)


@needs_advice
def reading(report: LoaderReport, width: int, height: int) -> Content:
    """What is read from where, in plain words."""
    rows = storage_rows(report.storage)
    found = [
        line((f"{'' if number else label:<10}", DIM), part)
        for label, sentence in rows
        for number, part in enumerate(wrapped(sentence, width - 10))
    ]
    return lines(found or [dim("no files were looked at")])


def wrapped(sentence: str, width: int) -> list[str]:
    """The sentence in lines of at most `width` characters (a panel does not wrap by itself)."""
    return textwrap.wrap(text(sentence, 1000), max(10, width))
