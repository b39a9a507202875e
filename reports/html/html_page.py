"""Fills the templates: escaping, inlined style and scripts, and a policy that lets nothing else in.

Jinja escapes every text. As a second barrier, the page's Content-Security-Policy allows only the
scripts whose hashes it names, and no connection to anywhere.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean
from ..document.blocks import Section
from .html_plot import Figure

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"

_FIX = "the HTML report needs {}: pip install 'loaderscope[html]'"


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
    return environment.get_template("page.html.j2").render(
        title=title,
        heading=heading,
        about=about,
        sections=sections,
        plots=plots,
        style=Markup((TEMPLATES / "style.css").read_text(encoding="utf-8")),
        scripts=[Markup(script) for script in scripts],
        policy=_policy(scripts),
        figures={each.id: {"data": each.data, "layout": each.layout} for each in figures},
    )


def escaping() -> Environment:
    """The templates, which clean and escape every text. Raises UsageError where jinja2 is not
    installed."""
    try:
        import jinja2
    except ImportError as error:
        raise UsageError(_FIX.format("jinja2")) from error
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


def _policy(scripts: Sequence[str]) -> str:
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
