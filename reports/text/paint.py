"""ANSI colours for lines that need no layout."""

from __future__ import annotations

_CODES = {"dim": "2", "bold": "1", "red": "31", "green": "32", "yellow": "33"}


def paint(text: str, style: str, color: bool) -> str:
    """`text` in a style ("dim", "bold", "red", "green", "yellow", or "" for none), if `color`."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if color and style else text
