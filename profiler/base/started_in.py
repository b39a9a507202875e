"""The folder in which the program was started, if known. It may change its folder later, as Hydra
does.

It is noted when this package is imported. If multiprocessing was imported earlier, it has noted the
folder too, and it passes the parent's folder on to the children that it starts.
"""

from __future__ import annotations

import os
import sys


def _noted() -> str | None:
    """The folder that multiprocessing has noted. None if it is not imported or the folder was
    gone."""
    folder = getattr(sys.modules.get("multiprocessing.process"), "ORIGINAL_DIR", None)
    return folder if type(folder) is str else None


def _now() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


_FOLDER = _noted() or _now()


def started_in() -> str | None:
    """None if the folder was gone."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        return _noted() or _FOLDER
    return _FOLDER
