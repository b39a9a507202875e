"""The sixth screen: the hottest functions and lines by stage, the transforms, and what is read."""

from __future__ import annotations

import textwrap

from textual.content import Content

from ...advisors.schema.report_model import CodeStage
from ...reports.words.inside import (
    HotRow,
    basis_text,
    code_stages,
    hot_rows,
    own_lines,
    transform_rows,
)
from ...reports.words.storage_words import storage_rows
from ...reports.words.units import bar, percent
from ..snapshot import Snapshot
from ..stack_requests import Taken
from .marks import BAD, DIM, FAIR, GOOD, MARK, fitted, line, lines, text

FUNCTIONS = 8
OWN_LINES = 5
LEAST_SHARE = 0.005
BAR = 8
_SHARE = 8
_KINDS = {"yours": (FAIR, "▸"), "library": (MARK, " "), "compiled": (DIM, "·")}


def status(s: Snapshot, width: int, height: int, taken: Taken | None = None) -> Content:
    """What the figures rest on, or why there are none; and what came of taking stacks."""
    found = s.advice.code
    if found is not None and code_stages(found):
        first = line((basis_text(found), DIM))
    elif found is not None and found.reason:
        first = line((text(found.reason), FAIR))
    elif not s.advice.ready:
        first = line(("being worked out…" if s.loader is not None else "–", DIM))
    else:
        first = line(("no stacks were taken", DIM))
    if taken is not None:
        style = FAIR if taken.done is None else GOOD if taken.done else BAD
        return lines([first, line((text(taken.said), f"bold {style}"))])
    hint = (
        "s takes stacks now"
        if s.state == "live"
        else "recorded; stacks can be taken of a live run only"
    )
    return lines([first, line((hint, DIM))])


def functions(s: Snapshot, width: int, height: int) -> Content:
    """Each stage with its hottest functions: share with what they call, share themselves, name,
    place."""
    stages = code_stages(s.advice.code)
    if not stages:
        return line(("no functions were seen", DIM))
    rows = [
        line(
            (
                f"{'share':>{_SHARE + 2}} {'itself':>{_SHARE}}  ▸ yours · compiled; the bar: with "
                "what it calls",
                DIM,
            )
        )
    ]
    for name, stage in stages:
        rows.append(_head(name, stage, width))
        rows += [_row(row, width) for row in hot_rows(stage, LEAST_SHARE)[:FUNCTIONS]]
    if s.advice.code is not None and s.advice.code.reason:
        rows += [line((part, FAIR)) for part in wrapped(s.advice.code.reason, max(10, width))]
    return lines(rows)


def own(s: Snapshot, width: int, height: int) -> Content:
    """The user's own lines by the share of their stage, with all that they call."""
    rows: list[Content] = []
    for name, stage in code_stages(s.advice.code):
        found = own_lines(stage)[:OWN_LINES]
        if found:
            rows.append(line((text(name, 20), "bold")))
            rows += [_row(row, width) for row in found]
    return lines(rows) if rows else line(("none of your lines was seen", DIM))


def _head(name: str, stage: CodeStage, width: int) -> Content:
    samples = f"{stage.samples:,} samples"
    gil = f" · GIL held {percent(stage.gil_share)}" if stage.gil_share is not None else ""
    return line(
        (fitted(text(name, 20), 10), "bold underline"),
        (f"  {samples}{gil}"[: max(0, width - 10)], DIM),
    )


def _row(row: HotRow, width: int) -> Content:
    """One line. What does not fit is left out: first who called, then the end of the name."""
    style, mark = _KINDS[row.kind]
    alone = ("", "") if row.line else (f"{row.itself:>{_SHARE}} ", DIM)
    left = width - _SHARE - BAR - len(alone[0]) - 5
    kept, spare = (row.where, row.code or row.name) if row.line else (row.where, row.name)
    spare = fitted(spare, max(8, left - len(kept) - 2)).rstrip()
    came = f"  ← {row.caller}" if row.caller and not row.line else ""
    came = came if len(kept) + 2 + len(spare) + len(came) <= left else ""
    strong = style if row.kind == "yours" else ""
    parts = (
        ((f" {kept}", strong), (f"  {spare}", DIM))
        if row.line
        else ((f" {spare}", strong), (f"  {kept}", DIM))
    )
    head = (
        (f"{mark} ", style),
        (f"{percent(row.fraction):>{_SHARE}} ", "bold"),
        alone,
        (bar(row.fraction, BAR), style),
    )
    return line(*head, *parts, (came, DIM))


def transforms(s: Snapshot, width: int, height: int) -> Content:
    """The callables of the data set's chains: time a call, share of fetch."""
    rows = transform_rows(s.advice.transforms)
    if not rows:
        return line(("no chain of transforms was found", DIM))
    shares = [each.share for each in s.advice.transforms]
    found = [line((f"{'a call':>10}{'of fetch':>10}", DIM))]
    room = max(8, width - 20 - BAR - 2)
    found += [
        line(
            f"{mean:>10}",
            (f"{share:>10} ", "bold"),
            (bar(part, BAR), MARK),
            f" {fitted(name, room).rstrip()}",
        )
        for (name, mean, share, _, _), part in zip(rows, shares, strict=False)
    ]
    return lines(found)


def reading(s: Snapshot, width: int, height: int) -> Content:
    """What is read from where, in plain words."""
    rows = storage_rows(s.advice.storage)
    if not rows:
        return line(("no files were looked at", DIM))
    found = []
    for label, sentence in rows:
        parts = wrapped(sentence, max(10, width - 10))
        found += [
            line((f"{label if not n else '':<10}", DIM), part) for n, part in enumerate(parts)
        ]
    return lines(found)


def wrapped(sentence: str, width: int) -> list[str]:
    """The sentence in lines of at most `width` characters (a panel does not wrap by itself)."""
    return textwrap.wrap(text(sentence, 1000), width) or [""]
