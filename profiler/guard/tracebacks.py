"""Keeping our own frames out of what the user reads."""

from __future__ import annotations

import os
import re
from types import TracebackType
from typing import Any

from ..native.form import native

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # of what records

# One frame of a printed traceback: the File line, and the source and marker lines under it.
_FRAME = re.compile(r'  File "(?P<file>[^"\n]*)", line \d+, in [^\n]*\n(?:    [^\n]*\n)*')


_HEADING = "Traceback (most recent call last):\n"


def without_own_frames(text: str) -> str:
    """A formatted traceback less the frames of this package. What the user's message says stays as it is: an error
    within is cut at its own line, which no frame's line looks like."""
    if HERE not in text:
        return text
    parts = []
    at = text.find(_HEADING)
    while at >= 0:
        at += len(_HEADING)
        parts.append(text[:at])
        text = text[at:]
        while (frame := _FRAME.match(text)) is not None:
            parts.append("" if frame["file"].startswith(HERE) else frame[0])
            text = text[frame.end() :]
        at = text.find(_HEADING)
    return "".join([*parts, text])


def clean_wrapper(wrapper: Any) -> None:
    """Take our frames out of a torch `ExceptionWrapper`, whose text becomes the message the user sees."""
    if native is not None:
        return  # there are none
    text = getattr(wrapper, "exc_msg", None)
    if isinstance(text, str):
        wrapper.exc_msg = without_own_frames(text)


def drop_inner_frames(error: BaseException) -> None:
    """Unlink our frames from the middle of a traceback (the outermost one cannot be: it is still running)."""
    entry: TracebackType | None = error.__traceback__
    while entry is not None:
        inner = entry.tb_next
        while inner is not None and inner.tb_frame.f_code.co_filename.startswith(HERE):
            inner = inner.tb_next
        if inner is not entry.tb_next:
            entry.tb_next = inner
        entry = inner
