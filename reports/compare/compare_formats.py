"""A comparison in every format: for a terminal, as JSON, as Markdown, as a page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from ...profiler.base.metadata import clean
from ..html.html_page import fill
from ..markdown import escaped, table
from ..text.paint import paint
from .compare_model import Comparison, LoaderComparison
from .compare_words import CAVEAT, NO_DIFFERENCE, difference_rows, headline, name_of, notes_of, setting_rows

MIN_WIDTH = 40
MAX_WIDTH = 110
_STYLES = {"faster": "green", "slower": "red", "less": "green", "more": "red", NO_DIFFERENCE: "dim"}


def render_compare_text(comparison: Comparison, width: int = 80, color: bool = False) -> str:
    """Each loader with its figures, then what was configured differently; only a table may be wider than asked."""
    width = max(MIN_WIDTH, min(width, MAX_WIDTH))
    return "\n".join(line.rstrip() for line in _lines(comparison, width, color)) + "\n"


def render_compare_json(comparison: Comparison) -> str:
    """JSON text, ending with a newline."""
    return comparison.to_json() + "\n"


def render_compare_markdown(comparison: Comparison) -> str:
    """GitHub-flavoured Markdown: tables, and no text that is obeyed."""
    parts = [f"## {escaped(clean(comparison.before))} → {escaped(clean(comparison.after))}\n"]
    for loader in comparison.loaders:
        parts += [f"### {escaped(name_of(loader))}\n", f"**{escaped(headline(loader))}**\n"]
        rows = [(row.name, row.before, row.after, row.change, row.judgement) for row in difference_rows(loader)]
        parts.append(table((f"a {loader.per}", "before", "after", "change", ""), rows, right=(1, 2, 3)))
        parts += [f"- {escaped(note)}" for note in loader.notes]
        if loader.settings:
            parts.append(table(("configuration", "before", "after"), setting_rows(loader.settings)))
    if not comparison.loaders:
        parts.append("**Nothing to compare: no loader was recorded in both runs.**\n")
    if comparison.settings:
        parts.append(table(("the runs", "before", "after"), setting_rows(comparison.settings)))
    parts += [f"- {escaped(note)}" for note in notes_of(comparison)]
    return "\n".join([*parts, f"\n{CAVEAT}\n"])


def render_compare_html(comparison: Comparison) -> str:
    """One self-contained page. Raises UsageError where jinja2 is not installed."""
    return fill(
        "compare.html.j2",
        before=clean(comparison.before, 100),
        after=clean(comparison.after, 100),
        loaders=[
            (f"loader{number}", name_of(each), headline(each), each.per, difference_rows(each),
             setting_rows(each.settings), [clean(note) for note in each.notes])
            for number, each in enumerate(comparison.loaders)
        ],
        settings=setting_rows(comparison.settings),
        notes=notes_of(comparison),
        caveat=CAVEAT,
    )  # fmt: skip


def _lines(comparison: Comparison, width: int, color: bool) -> Iterator[str]:
    yield f"before  {clean(comparison.before, width - 8)}"
    yield f"after   {clean(comparison.after, width - 8)}"
    for loader in comparison.loaders:
        yield ""
        yield from _loader(loader, width, color)
    if not comparison.loaders:
        yield from ("", "Nothing to compare: no loader was recorded in both runs.")
    if comparison.settings:
        yield from ("", "The runs differ in")
        yield from _settings(setting_rows(comparison.settings), width)
    for note in notes_of(comparison):
        yield from textwrap.wrap(f"· {note}", width, subsequent_indent="  ")
    if comparison.loaders:
        yield ""
        yield from (paint(line, "dim", color) for line in textwrap.wrap(CAVEAT, width))


def _loader(loader: LoaderComparison, width: int, color: bool) -> Iterator[str]:
    yield paint(clean(name_of(loader), width), "bold", color)
    yield from (f"  {line}" for line in textwrap.wrap(headline(loader), width - 2))
    yield ""
    rows = difference_rows(loader)
    columns = [max(len(row[i]) for row in [(r.name, r.before, r.after) for r in rows]) for i in range(3)]
    heads = (f"a {loader.per}", "before", "after")
    columns = [max(size, len(head)) for size, head in zip(columns, heads, strict=True)]
    room = max((len(row.change) for row in rows), default=0)
    with_change = 2 + sum(columns) + 6 + room + 2 + len(NO_DIFFERENCE) <= width
    yield paint(f"  {heads[0]:<{columns[0]}}  {heads[1]:>{columns[1]}}  {heads[2]:>{columns[2]}}", "dim", color)
    for row in rows:
        line = f"  {row.name:<{columns[0]}}  {row.before:>{columns[1]}}  {row.after:>{columns[2]}}"
        if with_change:
            line += f"  {row.change:<{room}}"
        yield f"{line}  {paint(row.judgement, _STYLES.get(row.judgement, ''), color)}"
    for note in loader.notes:
        yield from textwrap.wrap(f"· {clean(note)}", width, initial_indent="  ", subsequent_indent="    ")
    if loader.settings:
        yield from ("", "  configured differently")
        yield from _settings(setting_rows(loader.settings), width)


def _settings(rows: Sequence[tuple[str, str, str]], width: int) -> Iterator[str]:
    for name, before, after in rows:
        yield from textwrap.wrap(
            f"{name}: {before} → {after}", width, initial_indent="    ", subsequent_indent="      "
        )
