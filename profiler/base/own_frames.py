"""Our own frames in the tracebacks that users read."""

from __future__ import annotations

import os
from types import TracebackType

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# The folders whose code runs within a loop's calls.
OWN = HERE, os.path.join(os.path.dirname(os.path.dirname(HERE)), "tuning", "")


def drop_inner_frames(error: BaseException) -> None:
    """Unlink our frames from the middle of a traceback (the outermost one cannot be: it is still
    running)."""
    entry: TracebackType | None = error.__traceback__
    while entry is not None:
        inner = entry.tb_next
        while inner is not None and inner.tb_frame.f_code.co_filename.startswith(OWN):
            inner = inner.tb_next
        if inner is not entry.tb_next:
            entry.tb_next = inner
        entry = inner
