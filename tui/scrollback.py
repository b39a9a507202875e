"""A script's output as lines: enough of a terminal for logs, colours and progress bars.

Understood: a carriage return (what follows takes the line's place), the cursor's way up, colours.
Everything else that a terminal would obey (titles, clipboards, the mouse, other screens) is
dropped, so that a script's output cannot reach the real terminal.
"""

import codecs
import re

from rich.text import Text
from textual.content import Content

MAX_LINES = 500
MAX_COLUMNS = 1000

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
        self._lines = [""]  # with their colours as escape codes, and nothing else of the kind
        self._row = 0
        self._anew = False  # what is written next takes the place of the line
        self._rest = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> None:
        """Take in what the script wrote."""
        text = self._rest + self._decoder.decode(data)
        unfinished = _UNFINISHED.search(text)
        self._rest = unfinished[0] if unfinished and len(unfinished[0]) < 4096 else ""
        for piece in _PIECE.finditer(text, 0, len(text) - len(self._rest)):
            control = piece["control"]
            if piece["text"] is not None:
                self._write("".join(c if c.isprintable() else "\ufffd" for c in piece["text"]))
            elif control == "\t":
                self._write("    ")
            elif control == "\r":
                self._anew = True
            elif control == "\n":
                self._down()
            elif piece["final"] == "m":
                self._write(piece[0])
            elif piece["final"] == "A":
                steps = piece["args"][:4]
                self._row = max(0, self._row - (int(steps) if steps.isdigit() else 1))

    def lines(self, count: int) -> list[Content]:
        """The newest lines, `count` at most."""
        return [Content.from_rich_text(Text.from_ansi(line)) for line in self._lines[-count:]]

    def _write(self, text: str) -> None:
        before = "" if self._anew else self._lines[self._row]
        self._anew = False
        if len(before) < MAX_COLUMNS:
            self._lines[self._row] = before + text[:MAX_COLUMNS]

    def _down(self) -> None:
        self._row += 1
        self._anew = True
        if self._row == len(self._lines):
            self._lines.append("")
            if self._row > MAX_LINES:
                del self._lines[0]
                self._row -= 1
