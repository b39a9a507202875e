"""What a notebook shows of a report: the first screen of the HTML report, as a piece of somebody
else's page.

No script, nothing fetched, every text escaped; the styles are those of the report, nested under one
class, so that they reach nothing else of the page.
"""

from __future__ import annotations

import re

from ...advisors.schema.report_model import LoaderReport, Report
from ...profiler.base.metadata import clean
from ..words.rows import advice_row, title_of
from ..words.sentences import headroom_sentence, limit_sentence, nothing_to_change, throughput_line
from ..words.tuned_words import tuned_lead
from .html_page import TEMPLATES, escaping
from .html_report import MAX_LOADERS, tiles_of

CLASS = "loaderscope-report"
MAX_MISSING = 10


def render_first_screen(report: Report) -> str:
    """The piece of HTML. Raises UsageError where jinja2 is not installed."""
    several = len(report.loaders) > 1
    return (
        escaping()
        .get_template("first_screen.html.j2")
        .render(
            css_class=CLASS,
            style=_nested((TEMPLATES / "style.css").read_text(encoding="utf-8")),
            missing=[clean(sentence) for sentence in report.missing[:MAX_MISSING]],
            loaders=[_view(loader, several) for loader in report.loaders[:MAX_LOADERS]],
            more_loaders=max(0, len(report.loaders) - MAX_LOADERS),
            run=clean(report.run.id, 60),
        )
    )


def _view(loader: LoaderReport, several: bool) -> dict[str, object]:
    return {
        "title": title_of(loader, several),
        "verdict": loader.verdict,
        "tuned": tuned_lead(loader.tuning) if loader.tuning is not None else [],
        "sentence": clean(loader.basis.sentence),
        "headroom": headroom_sentence(loader) if loader.verdict != "too-short" else None,
        "limit": limit_sentence(loader),
        "throughput": throughput_line(loader),
        "tiles": tiles_of(loader),
        "nothing": nothing_to_change(loader),
        "recommendations": [advice_row(each) for each in loader.recommendations],
    }


def _nested(style: str) -> str:
    """The style sheet for what has the class alone: the page's root and body become the element
    that has it."""
    style = re.sub(r"(?m)^@page .*$\n", "", style)
    style = re.sub(r"(?m)^(\s*)(?::root|body) \{", r"\1& {", style)
    return f".{CLASS} {{\n{style}section:first-of-type h2 {{ margin-top: 0; border-top: 0; }}\n}}\n"
