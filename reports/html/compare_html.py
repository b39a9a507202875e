"""A comparison as one HTML file."""

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
from .html_page import fill


def render_compare_html(comparison: Comparison) -> str:
    """One self-contained page. Raises UsageError where jinja2 is not installed."""
    return fill(
        "compare.html.j2",
        before=clean(comparison.before, 100),
        after=clean(comparison.after, 100),
        loaders=[
            (
                f"loader{number}",
                name_of(each),
                headline(each),
                each.per,
                difference_rows(each),
                setting_rows(each.settings),
                [clean(note) for note in each.notes],
            )
            for number, each in enumerate(comparison.loaders)
        ],
        settings=setting_rows(comparison.settings),
        notes=notes_of(comparison),
        caveat=CAVEAT,
    )
