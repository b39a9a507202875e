"""The report as one HTML file that opens anywhere, offline: nothing is fetched, nothing is sent.

The templates are filled with its text, style and scripts. Jinja escapes every text. As a second
barrier, the page's Content-Security-Policy allows only the scripts whose hashes it names, and no
connection to anywhere.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...advisors.schema.report_model import Report, RunInfo
from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean
from ...profiler.store.run.run import Run
from ..document.blocks import Section
from ..document.report import groups_of, report_sections
from ..words.loaders import recorded
from .html_code import flame_figure
from .html_loader import loader_figures
from .html_plot import Figure, system_figures

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"


# Of the 1 MB that a file may have, a loader's plots take up to 200 kB, its tables some 30 kB.
MAX_PLOTTED = 4
MAX_LOADERS = 16


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
    plots: dict[str, list[Figure]] = defaultdict(list)
    with np.errstate(all="ignore"):  # damaged columns may hold any number
        sections = list(report_sections(report, MAX_LOADERS))
        columns = {id(loader): found for loader, found in recorded(report, run)}
        for number, (loader, *_) in enumerate(groups_of(report)[:MAX_PLOTTED]):
            key = f"loader{number}"
            plots[key] += loader_figures(key, columns[id(loader)])
            plots[f"{key}-flame"] += flame_figure(key, loader.code)
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
