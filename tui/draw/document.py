"""Blocks of a document on a screen: laid out as in the text report, in the theme's colours."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group
from rich.segment import Segment
from rich.style import Style
from textual.content import Content

from ...reports.document.blocks import Block, Part
from ...reports.text.draw import console, drawn_parts
from .marks import BAD, FAIR, GOOD, MARK, lines

_COLORS = {"green": GOOD, "yellow": FAIR, "red": BAD, "cyan": MARK}
LEAST_WIDTH = 20


def blocks(found: Iterable[Block], width: int) -> Content:
    """The blocks below each other, without empty lines between them."""
    return parts([Part("", list(found))], width, gaps=False)


def parts(found: Iterable[Part], width: int, gaps: bool = True) -> Content:
    """The parts below each other, each below its title."""
    width = max(LEAST_WIDTH, width)
    segments = console(width).render(Group(*drawn_parts(found, width, gaps=gaps)))
    return lines(
        [
            Content.assemble(*((part.text, _style(part.style)) for part in line)).rstrip()
            for line in Segment.split_lines(segments)
        ]
    ).rstrip()


def _style(style: Style | None) -> str:
    """The same in the theme's words."""
    if style is None:
        return ""
    flags = (name for name in ("bold", "dim", "italic", "underline") if getattr(style, name))
    return " ".join([*flags, _COLORS.get(style.color.name, "") if style.color else ""]).strip()
