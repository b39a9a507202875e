"""Rich's layout as plain text: as wide as asked, with colours or without, in ASCII where nothing
else can be shown."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console, RenderableType

MIN_WIDTH = 40
MAX_WIDTH = 140

# For terminals without Unicode; one character for one, so that columns stay aligned.
_ASCII = str.maketrans(
    "█▉▊▋▌▍▎▏▁▂▃▄▅▆▇●·µ×–—…→←↑↓─━│┃┌┐└┘├┤┬┴┼╭╮╰╯’“”−▶◀▲▼■○",
    "#######" + "._.--==%*-ux--.><^v--||+++++++++++++" + "'" + '""' + "-><^v#o",
)


def fitting_width(width: int, most: int = MAX_WIDTH) -> int:
    """The width of the text in a terminal of so many columns."""
    return max(MIN_WIDTH, min(width, most))


def console(width: int, color: bool = True) -> Console:
    """Lays texts out in `width` columns. None of them is read as markup."""
    return Console(
        file=io.StringIO(),
        width=width,
        color_system="standard" if color else None,
        force_terminal=color,
        force_jupyter=False,  # it would show there what is to be returned
        no_color=not color,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )


def printed(parts: Iterable[RenderableType], width: int, color: bool, unicode: bool) -> str:
    """The parts below each other, without spaces at the ends of lines."""
    output = console(width, color)
    with output.capture() as capture:
        for part in parts:
            # Code is shown whole, however long its lines; all else wraps.
            output.print(part, crop=False)
    lines = (line.rstrip() for line in capture.get().splitlines())
    text = "\n".join(lines).rstrip("\n") + "\n"
    return text if unicode else ascii_of(text)


def ascii_of(text: str) -> str:
    """The text in as many characters of ASCII."""
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")
