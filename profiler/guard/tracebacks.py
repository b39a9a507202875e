"""Keeps our own frames out of the tracebacks that users read."""

from __future__ import annotations

import re
from typing import Any

from ..base.own_frames import HERE
from ..native.form import native

# One frame of a printed traceback: the File line, and the source and marker lines under it.
_FRAME = re.compile(r'  File "(?P<file>[^"\n]*)", line \d+, in [^\n]*\n(?:    [^\n]*\n)*')


_HEADING = "Traceback (most recent call last):\n"


def without_own_frames(text: str) -> str:
    """A formatted traceback without the frames of this package. The user's message is left as it
    is, since it does not look like a frame."""
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
    """Remove our frames from a torch `ExceptionWrapper`, whose text becomes the error message."""
    if native is not None:
        return  # compiled hooks have no frames
    text = getattr(wrapper, "exc_msg", None)
    if isinstance(text, str):
        wrapper.exc_msg = without_own_frames(text)
