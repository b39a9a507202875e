"""A comparison as Markdown."""

from __future__ import annotations

from ...profiler.base.metadata import clean
from ..compare.compare_model import Comparison
from ..compare.compare_words import (
    CAVEAT,
    difference_rows,
    headline,
    name_of,
    notes_of,
    setting_rows,
)
from .markup import bullets, escaped, table


def render_compare_markdown(comparison: Comparison) -> str:
    """GitHub-flavoured Markdown: tables, and no text that is obeyed."""
    parts = [f"## {escaped(clean(comparison.before))} → {escaped(clean(comparison.after))}\n"]
    for loader in comparison.loaders:
        parts += [f"### {escaped(name_of(loader))}\n", f"**{escaped(headline(loader))}**\n"]
        rows = [
            (row.name, row.before, row.after, row.change, row.judgement)
            for row in difference_rows(loader)
        ]
        parts.append(
            table((f"a {loader.per}", "before", "after", "change", ""), rows, right=(1, 2, 3))
        )
        parts.append(bullets(loader.notes))
        if loader.settings:
            parts.append(table(("configuration", "before", "after"), setting_rows(loader.settings)))
    if not comparison.loaders:
        parts.append("**Nothing to compare: no loader was recorded in both runs.**\n")
    if comparison.settings:
        parts.append(table(("the runs", "before", "after"), setting_rows(comparison.settings)))
    parts.append(bullets(notes_of(comparison)))
    return "\n".join([*parts, f"\n{CAVEAT}\n"])
