"""The report as one HTML file that opens anywhere, offline: nothing is fetched, nothing is sent.
And its first screen as a piece of somebody else's page, for notebooks: without scripts, its styles
nested under one class, so that they reach nothing else of that page.

The templates are filled with its text, style and scripts. Jinja escapes every text. As a second
barrier, the page's Content-Security-Policy allows only the scripts whose hashes it names, and no
connection to anywhere.
"""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...advisors.schema.report_model import Report, RunInfo
from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean
from ...profiler.store.run.run import Run
from ..document.blocks import Section
from ..document.report import groups_of, report_sections, shown
from .html_code import Room, flame_figure
from .html_loader import loader_figures
from .html_plot import Figure, system_figures

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"


# Of the 1 MB that a file may have, a loader's plots take up to 100 kB, its tables some 30 kB.
MAX_PLOTTED = 6
MAX_LOADERS = 16
CLASS = "loaderscope-report"


def fill(
    title: str,
    heading: str,
    sections: Sequence[Section],
    plots: Mapping[str, Sequence[Figure]],
    about: str = "",
) -> str:
    """A page of these sections, below a line `about` what they are of. `plots` by the keys of their
    places are drawn by a script that is inlined only if there are any; a page with `about` ends
    with definitions.

    Raises UsageError where jinja2 is not installed.
    """
    environment = escaping()
    from markupsafe import Markup

    figures = [figure for found in plots.values() for figure in found]
    scripts = [
        (TEMPLATES / name).read_text(encoding="utf-8")
        for name in (*(["plots.js"] if figures else []), "report.js")
    ]
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(each).decode()}'" for each in digests)
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    return environment.get_template("page.html.j2").render(
        title=title,
        heading=heading,
        about=about,
        sections=sections,
        plots=plots,
        style=Markup((TEMPLATES / "style.css").read_text(encoding="utf-8")),
        scripts=[Markup(script) for script in scripts],
        policy=policy,
        figures={each.id: {"data": each.data, "layout": each.layout} for each in figures},
    )


def escaping() -> Environment:
    """The templates, which clean and escape every text. Raises UsageError where jinja2 is not
    installed."""
    try:
        import jinja2
    except ImportError as error:
        raise UsageError("the HTML report needs jinja2: pip install 'loaderscope[html]'") from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: clean(value) if type(value) is str else value,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return environment


def render_html(report: Report, run: Run) -> str:
    """One self-contained page of at most 1 MB. Raises UsageError where jinja2 is not installed."""
    room = Room(len(groups_of(report)))
    plots: dict[str, list[Figure]] = defaultdict(list)
    with np.errstate(all="ignore"):  # damaged columns may hold any number
        sections = list(report_sections(report, run, MAX_LOADERS))
        pairs = shown(report, run, groups_of(report))
        for number, ((loader, *_), columns) in enumerate(pairs[:MAX_LOADERS]):
            key = f"loader{number}"
            if number < MAX_PLOTTED:
                plots[key] += loader_figures(key, loader, columns)
            plots[f"{key}-flame"] += flame_figure(key, loader.code, room)
        plots["machine"] += system_figures(run)
    first = next((each for each in sections if each.verdict), None)
    return fill(
        title=f"{first.verdict}: {first.title}" if first else "nothing recorded",
        heading="Where each batch's time goes",
        sections=sections,
        plots=plots,
        about=_about(report.run),
    )


def _about(run: RunInfo) -> str:
    """'train.py --lr 0.1 · on node3 · 2025-01-31 09:15 UTC'"""
    when = ""
    with suppress(OverflowError, OSError, ValueError):
        begun = time.gmtime((run.created_unix_ns or 0) / 1e9)
        when = time.strftime("%Y-%m-%d %H:%M UTC", begun) if run.created_unix_ns else ""
    parts = (clean(" ".join(run.argv), 200), f"on {clean(run.host, 80)}" if run.host else "", when)
    return " · ".join(filter(None, parts))


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
    for each in report_sections(report, most=MAX_LOADERS):
        if not each.key or each.verdict:
            parts = [part for part in each.parts if part.title in ("", "What to change")]
            yield replace(each, parts=parts)


def _nested(style: str) -> str:
    """The style sheet for what has the class alone: the page's root and body become the element
    that has it."""
    style = re.sub(r"(?m)^@page .*$\n", "", style)
    style = re.sub(r"(?m)^(\s*)(?::root|body) \{", r"\1& {", style)
    return f".{CLASS} {{\n{style}section:first-of-type h2 {{ margin-top: 0; border-top: 0; }}\n}}\n"
