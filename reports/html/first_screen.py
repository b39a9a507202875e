"""What a notebook shows of a report: the first screen of the HTML report, as a piece of somebody
else's page.

No script, nothing fetched, every text escaped; the styles are those of the report, nested under one
class, so that they reach nothing else of the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...advisors.schema.report_model import Report
from ..document.advice import card, tuned_blocks
from ..document.blocks import Part, Section, Sentence, section, sentences
from ..document.report import NOTHING, lead, tiles, title_of
from ..words.plan_words import plan_rows
from ..words.sentences import nothing_to_change, throughput_line
from .html_page import TEMPLATES, escaping
from .html_report import MAX_LOADERS

CLASS = "loaderscope-report"
MAX_MISSING = 10


def render_first_screen(report: Report) -> str:
    """The piece of HTML. Raises UsageError where jinja2 is not installed."""
    return (
        escaping()
        .get_template("first_screen.html.j2")
        .render(
            css_class=CLASS,
            style=_nested((TEMPLATES / "style.css").read_text(encoding="utf-8")),
            sections=list(_sections(report)),
            run=report.run.id,
        )
    )


def _sections(report: Report) -> Iterator[Section]:
    yield section("", "", sentences(report.missing[:MAX_MISSING], "warning"))
    for loader in report.costliest[:MAX_LOADERS]:
        rows = plan_rows(loader)
        nothing = nothing_to_change(loader) if not rows else None
        dim = Sentence(throughput_line(loader), "dim")
        head = Part("", [*tuned_blocks(loader), *lead(loader), tiles(loader), dim])
        cards = [card(row, full=True) for row in rows]
        advice = Part("What to change" if rows else "", [*cards, *sentences([nothing], "strong")])
        yield Section(title_of(loader, len(report.loaders) > 1), [head, advice], "", loader.verdict)
    more = len(report.loaders) - MAX_LOADERS
    said = f"… and {more} more loaders: report.to_json() has them all" if more > 0 else None
    yield section("", "", sentences([said, NOTHING if not report.loaders else None]))


def _nested(style: str) -> str:
    """The style sheet for what has the class alone: the page's root and body become the element
    that has it."""
    style = re.sub(r"(?m)^@page .*$\n", "", style)
    style = re.sub(r"(?m)^(\s*)(?::root|body) \{", r"\1& {", style)
    return f".{CLASS} {{\n{style}section:first-of-type h2 {{ margin-top: 0; border-top: 0; }}\n}}\n"
