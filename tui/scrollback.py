"""A script's output as lines: just enough of a terminal for logs, colours and progress bars.

Understood: carriage return, backspace, tab, cursor up and down, erasing of lines, and colours.
Everything else that a terminal would obey (titles, clipboards, the mouse, other screens) is
dropped, so that a script's output cannot reach the real terminal.
"""

from __future__ import annotations

import codecs
import re
from collections import deque

from rich.color import Color
from textual.content import Content

MAX_LINES = 2000
# A cursor can go back so many lines; older ones are settled.
REACH = 60
MAX_COLUMNS = 1000

Cell = tuple[str, str]

_PIECE = re.compile(
    r"\x1b\[(?P<args>[0-?]*)[ -/]*(?P<final>[@-~])"  # a control sequence
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|\Z)"  # a string: titles, hyperlinks
    r"|\x1b[ -/]*[0-~]"  # other escapes
    r"|(?P<control>[\x00-\x1f\x7f-\x9f])"
    r"|(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)?\Z")

_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_WORDS = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}


class Scrollback:
    """`feed` bytes, then look at `lines`. `version` grows with every change."""

    def __init__(self) -> None:
        self.version = 0
        self._settled: deque[Content] = deque(maxlen=MAX_LINES)
        self._open: list[list[Cell]] = [[]]
        self._row = 0
        self._column = 0
        self._words: set[str] = set()
        self._color = ""
        self._back = ""
        self._style = ""
        self._rest = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> None:
        """Take in what the script wrote."""
        text = self._rest + self._decoder.decode(data)
        unfinished = _UNFINISHED.search(text)
        self._rest = text[unfinished.start() :] if unfinished and len(unfinished[0]) < 4096 else ""
        text = text[: len(text) - len(self._rest)]
        for piece in _PIECE.finditer(text):
            if piece["text"] is not None:
                self._write(piece["text"])
            elif piece["control"] is not None:
                self._control(piece["control"])
            elif piece["final"] is not None:
                self._sequence(piece["final"], piece["args"])
        self.version += 1

    def lines(self, count: int, back: int = 0) -> list[Content]:
        """`count` lines, the last of them `back` lines above the newest."""
        whole = len(self._settled) + len(self._open)
        end = max(0, whole - back)
        begin = max(0, end - count)
        found = [self._settled[n] for n in range(begin, min(end, len(self._settled)))]
        found += [
            _content(self._open[n - len(self._settled)])
            for n in range(max(begin, len(self._settled)), end)
        ]
        return found

    @property
    def height(self) -> int:
        """Lines there are."""
        return len(self._settled) + len(self._open)

    def _write(self, text: str) -> None:
        line = self._open[self._row]
        text = text[: max(0, MAX_COLUMNS - self._column)]
        if len(line) < self._column:
            line += [(" ", "")] * (self._column - len(line))
        style = self._style
        line[self._column : self._column + len(text)] = [
            (each if each.isprintable() else "�", style) for each in text
        ]
        self._column += len(text)

    def _control(self, control: str) -> None:
        if control == "\n":
            self._down(1)
            self._column = 0  # the terminal adds the carriage return
        elif control == "\r":
            self._column = 0
        elif control == "\b":
            self._column = max(0, self._column - 1)
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

    def _sequence(self, final: str, args: str) -> None:
        numbers = (
            [int(each) if each.isdigit() else 0 for each in args.split(";")[:16]] if args else [0]
        )
        first = numbers[0]
        if final == "m":
            self._colour(numbers)
        elif final == "A":
            self._row = max(0, self._row - max(1, first))
        elif final == "B":
            self._down(max(1, first))
        elif final == "C":
            self._column = min(MAX_COLUMNS, self._column + max(1, first))
        elif final == "D":
            self._column = max(0, self._column - max(1, first))
        elif final == "G":
            self._column = min(MAX_COLUMNS, max(0, first - 1))
        elif final == "K":
            line = self._open[self._row]
            if first == 0:
                del line[self._column :]
            else:
                line[: self._column] = [(" ", "")] * min(self._column, len(line))
                if first == 2:
                    line.clear()

    def _colour(self, numbers: list[int]) -> None:
        at = 0
        while at < len(numbers):
            n = numbers[at]
            if n == 0:
                self._words, self._color, self._back = set(), "", ""
            elif n in _WORDS:
                self._words.add(_WORDS[n])
            elif n == 22:
                self._words -= {"bold", "dim"}
            elif n in (23, 24, 27, 29):
                self._words.discard(_WORDS[n - 20])
            elif 30 <= n <= 37 or 90 <= n <= 97:
                self._color = f"ansi_{'bright_' if n >= 90 else ''}{_NAMES[n % 10]}"
            elif 40 <= n <= 47 or 100 <= n <= 107:
                self._back = f"ansi_{'bright_' if n >= 100 else ''}{_NAMES[n % 10]}"
            elif n == 39:
                self._color = ""
            elif n == 49:
                self._back = ""
            elif n in (38, 48):
                color, used = _extended(numbers[at + 1 :])
                at += used
                if n == 38:
                    self._color = color
                else:
                    self._back = color
            at += 1
        parts = [*sorted(self._words), self._color, f"on {self._back}" if self._back else ""]
        self._style = " ".join(filter(None, parts))


def _extended(numbers: list[int]) -> tuple[str, int]:
    """'5;n' or '2;r;g;b' as a colour, and how many numbers that took."""
    if numbers[:1] == [5] and len(numbers) > 1:
        n = min(255, numbers[1])
        if n < 16:
            return f"ansi_{'bright_' if n >= 8 else ''}{_NAMES[n % 8]}", 2
        return Color.from_ansi(n).get_truecolor().hex, 2
    if numbers[:1] == [2] and len(numbers) > 3:
        return "#" + "".join(f"{min(255, part):02x}" for part in numbers[1:4]), 4
    return "", len(numbers)


def _content(cells: list[Cell]) -> Content:
    """A line's cells, equal styles joined."""
    parts: list[str | tuple[str, str]] = []
    start = 0
    for at in range(1, len(cells) + 1):
        if at == len(cells) or cells[at][1] != cells[start][1]:
            text, style = "".join(cell[0] for cell in cells[start:at]), cells[start][1]
            parts.append((text, style) if style else text)
            start = at
    return Content.assemble(*parts) if cells else Content("")
