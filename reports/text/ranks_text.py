"""What the ranks of a job show of one loader: who holds the others up, and the spread of its
stages."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...advisors.schema.report_model import LoaderReport
from ..words.ranks import HEAD, rank_rows, rank_sentences
from .layout import INDENT, indented


def rank_lines(loader: LoaderReport) -> Iterator[RenderableType]:
    """Nothing for a loader of one rank."""
    slow = loader.ranks is not None and loader.ranks.slowest is not None
    for number, sentence in enumerate(rank_sentences(loader)):
        yield indented(sentence, "bold" if slow and not number else "")
    rows = rank_rows(loader)
    if rows:
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
        for number, head in enumerate(HEAD):
            table.add_column(head, justify="right" if number else "left", overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        yield Padding(table, (1, 0, 0, INDENT))
