"""Colours: a dark and a light theme with texts that keep 4.5:1 against their background, and which
one fits."""

from __future__ import annotations

import re
from collections.abc import Mapping

from textual.theme import Theme

DARK = Theme(
    name="loaderscope-dark",
    primary="#4aa8ff",
    secondary="#7f8ea3",
    accent="#c792ea",
    warning="#ffc24b",
    error="#ff6b6b",
    success="#5fd38d",
    foreground="#dfe5ee",
    background="#11151c",
    surface="#161b24",
    panel="#1f2733",
    dark=True,
    variables={
        "text-primary": "#6cb8ff",
        "text-accent": "#d0a6f0",
        "text-warning": "#ffc24b",
        "text-error": "#ff8080",
        "text-success": "#5fd38d",
    },
)

LIGHT = Theme(
    name="loaderscope-light",
    primary="#0b62b8",
    secondary="#5b6776",
    accent="#7d3fb0",
    warning="#8a5a00",
    error="#b3261e",
    success="#14743f",
    foreground="#1b2430",
    background="#f7f8fa",
    surface="#f0f2f5",
    panel="#e2e6ec",
    dark=False,
    variables={
        "text-primary": "#0b57a4",
        "text-accent": "#7d3fb0",
        "text-warning": "#835400",
        "text-error": "#b3261e",
        "text-success": "#116638",
    },
)


def fitting(environ: Mapping[str, str]) -> str:
    """The theme for a terminal, as far as its environment tells.

    COLORFGBG (rxvt, Konsole, iTerm2) ends in the background's colour number: 7 and 9 to 15 are
    light. A terminal that promises neither 256 nor true colours gets the theme of its own sixteen.
    """
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    light = background.isdigit() and (int(background) == 7 or 9 <= int(background) <= 15)
    term = environ.get("TERM", "")
    rich = (
        environ.get("COLORTERM", "").lower() in ("truecolor", "24bit")
        or "256" in term
        or "direct" in term
    )
    if not rich and re.fullmatch(r"|linux|xterm(-16color)?|screen|tmux|vt[12][02]0|ansi", term):
        return "ansi-light" if light else "ansi-dark"
    return LIGHT.name if light else DARK.name
