"""A script's output as lines: just enough of a terminal for logs, colours and progress bars.

Understood: carriage return, backspace, tab, cursor up and down, erasing of lines, and colours.
Everything else that a terminal would obey (titles, clipboards, the mouse, other screens) is
dropped, so that a script's output cannot reach the real terminal.
"""

from __future__ import annotations

import codecs
import re
from collections import deque
from itertools import groupby

from rich.ansi import AnsiDecoder
from rich.style import Style
from rich.text import Text
from textual.content import Content

MAX_LINES = 2000
# A cursor can go back so many lines; older ones are settled.
REACH = 60
MAX_COLUMNS = 1000

Cell = tuple[str, Style]

_PIECE = re.compile(
    r"\x1b\[(?P<args>[0-?]{0,256})[ -/]*(?P<final>[@-~])"  # a control sequence
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|\Z)"  # a string: titles, hyperlinks
    r"|\x1b[ -/]*[0-~]"  # other escapes
    r"|(?P<control>[\x00-\x1f\x7f-\x9f])"
    r"|(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)?\Z")


class Scrollback:
    """`feed` bytes, then look at `lines`."""

    def __init__(self) -> None:
        self._settled: deque[Content] = deque(maxlen=MAX_LINES)
        self._open: list[list[Cell]] = [[]]
        self._row = self._column = 0
        self._colours = AnsiDecoder()
        self._rest = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> None:
        """Take in what the script wrote."""
        text = self._rest + self._decoder.decode(data)
        unfinished = _UNFINISHED.search(text)
        self._rest = unfinished[0] if unfinished and len(unfinished[0]) < 4096 else ""
        for piece in _PIECE.finditer(text, 0, len(text) - len(self._rest)):
            if piece["text"] is not None:
                self._write(piece["text"])
            elif piece["control"] is not None:
                self._control(piece["control"])
            elif piece["final"] == "m":
                self._colours.decode_line(piece[0])
            elif piece["final"] is not None:
                first = piece["args"].split(";")[0]
                self._move(piece["final"], int(first) if first.isdigit() else 0)

    def lines(self, count: int, back: int = 0) -> list[Content]:
        """`count` lines, the last of them `back` lines above the newest."""
        end, settled = max(0, self.height - back), len(self._settled)
        return [
            self._settled[n] if n < settled else _content(self._open[n - settled])
            for n in range(max(0, end - count), end)
        ]

    @property
    def height(self) -> int:
        """Lines there are."""
        return len(self._settled) + len(self._open)

    def _write(self, text: str) -> None:
        line, style = self._open[self._row], self._colours.style
        text = text[: MAX_COLUMNS - self._column]
        line += [(" ", Style.null())] * (self._column - len(line))
        line[self._column : self._column + len(text)] = [
            (each if each.isprintable() else "\ufffd", style) for each in text
        ]
        self._column += len(text)

    def _control(self, control: str) -> None:
        if control == "\r":
            self._column = 0
        elif control == "\b":
            self._column = max(0, self._column - 1)
        elif control == "\n":
            self._down(1)
            self._column = 0  # the terminal adds the carriage return
        elif control == "\t":
            self._column = min(MAX_COLUMNS, (self._column // 8 + 1) * 8)

    def _down(self, count: int) -> None:
        for _ in range(min(count, REACH)):
            self._row += 1
            if self._row == len(self._open):
                self._open.append([])
            if len(self._open) > REACH:
                self._settled.append(_content(self._open.pop(0)))
                self._row -= 1

    def _move(self, final: str, number: int) -> None:
        """Obey a control sequence that moves the cursor or erases in its line."""
        steps, line = max(1, number), self._open[self._row]
        if final == "A":
            self._row = max(0, self._row - steps)
        elif final == "B":
            self._down(steps)
        elif final in "CDG":
            column = {"C": self._column + steps, "D": self._column - steps, "G": steps - 1}[final]
            self._column = min(MAX_COLUMNS, max(0, column))
        elif final == "K":
            erased = min(self._column, len(line)) if number else 0
            line[:erased] = [(" ", Style.null())] * erased
            if number != 1:
                del line[self._column if number == 0 else 0 :]


def _content(cells: list[Cell]) -> Content:
    """A line's cells, equal styles joined."""
    runs = groupby(cells, key=lambda cell: cell[1])
    parts = (("".join(each for each, _ in run), style) for style, run in runs)
    return Content.from_rich_text(Text.assemble(*parts))
