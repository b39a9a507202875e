"""What a notebook shows of a report: the first screen of the HTML report, as a piece of somebody
else's page.

No script, nothing fetched, every text escaped; the styles are those of the report, nested under one
class, so that they reach nothing else of the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ...advisors.schema.report_model import Report
from ..document.blocks import Section
from ..document.report import report_sections
from .html_report import MAX_LOADERS, TEMPLATES, escaping

CLASS = "loaderscope-report"


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
    for each in report_sections(report, MAX_LOADERS):
        if not each.key or each.verdict:
            parts = [part for part in each.parts if part.title in ("", "What to change")]
            yield replace(each, parts=parts)


def _nested(style: str) -> str:
    """The style sheet for what has the class alone: the page's root and body become the element
    that has it."""
    style = re.sub(r"(?m)^@page .*$\n", "", style)
    style = re.sub(r"(?m)^(\s*)(?::root|body) \{", r"\1& {", style)
    return f".{CLASS} {{\n{style}section:first-of-type h2 {{ margin-top: 0; border-top: 0; }}\n}}\n"
