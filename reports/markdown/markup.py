"""Markdown of texts that are only to be read: nothing in them is obeyed."""

from __future__ import annotations

import re

from ...profiler.base.metadata import clean

ENTITIES = {c: f"&#{ord(c)};" for c in "<>&@#|"}  # tags, mentions, issue numbers, table cells
_MEANT = re.compile(r"[\\`*_\[\]~$]")
_BEGINS_A_LIST = re.compile(r"^(\d+)([.)])(?=\s|$)|^([-+=])(?=[-+=\s]|$)")


def escaped(text: str) -> str:
    """Text that reads as it is, wherever it stands: no tag, emphasis, link, mention, table border
    or list."""
    line = _MEANT.sub(lambda match: "\\" + match[0], clean(text))
    line = "".join(ENTITIES.get(c, c) for c in line)
    line = (
        line.replace("\\\\", "&#92;").replace("://", "&#58;//").replace("www.", "www&#46;")
    )  # bare links
    return _BEGINS_A_LIST.sub(lambda m: f"{m[1]}\\{m[2]}" if m[1] else f"\\{m[3]}", line)


def fenced(code: str, language: str = "python") -> str:
    """A code block whose fence no line of the code can close."""
    longest = max((len(run) for run in re.findall(r"`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code}\n{fence}\n"
