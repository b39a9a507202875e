"""The folder that the program was started in, as far as it is known: it may change its folder
later, as Hydra does.

It is noted when this package is imported, and multiprocessing, where that was imported earlier, has
noted it too. In children that multiprocessing starts anew it hands on what it noted in their
parent, whose folder they begin in.
"""

from __future__ import annotations

import os
import sys


def _noted() -> str | None:
    """What multiprocessing has noted; None where nothing imported it, or the folder was gone."""
    folder = getattr(sys.modules.get("multiprocessing.process"), "ORIGINAL_DIR", None)
    return folder if type(folder) is str else None


def _now() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


_FOLDER = _noted() or _now()


def started_in() -> str | None:
    """None where the folder was gone."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        return _noted() or _FOLDER
    return _FOLDER
