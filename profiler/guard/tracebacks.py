"""Keeps our own frames out of the tracebacks that users read."""

from __future__ import annotations

import re
from typing import Any

from ..base.own_frames import HERE
from ..native.form import native

# One frame of a printed traceback: the File line, and the source and marker lines under it.
_FRAME = r'  File "(?P<file>[^"\n]*)", line \d+, in [^\n]*\n(?:    [^\n]*\n)*'
_FRAMES = re.compile(rf"(?<=Traceback \(most recent call last\):\n)(?:{_FRAME})+")


def without_own_frames(text: str) -> str:
    """A formatted traceback without the frames of this package. The user's message is left as it
    is, since it does not look like a frame."""

    def kept(frame: re.Match[str]) -> str:
        return "" if frame["file"].startswith(HERE) else frame[0]

    return _FRAMES.sub(lambda frames: re.sub(_FRAME, kept, frames[0]), text)


def clean_wrapper(wrapper: Any) -> None:
    """Remove our frames from a torch `ExceptionWrapper`, whose text becomes the error message."""
    if native is not None:
        return  # compiled hooks have no frames
    text = getattr(wrapper, "exc_msg", None)
    if isinstance(text, str):
        wrapper.exc_msg = without_own_frames(text)
