"""Drawing for a terminal that is not UTF-8."""

from __future__ import annotations

import sys

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from ..reports.text.draw import ascii_of


def needed() -> bool:
    """Whether standard output takes no Unicode, by the locale."""
    stream = sys.__stdout__
    return stream is not None and "utf" not in (stream.encoding or "utf-8").lower()


class Ascii(LineFilter):
    """Each character as one of ASCII, so that columns stay where they are."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(ascii_of(text), style, control) for text, style, control in segments]
