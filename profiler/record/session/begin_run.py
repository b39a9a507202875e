"""Chooses where a run is recorded: the wanted folder, else the temporary one, else nowhere."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ...guard.error_origin import is_ours
from ...store.rundir import temporary_runs
from .job import join_run

Begun = TypeVar("Begun")


def begin_run(
    runs: Callable[[], Path],
    argv: list[str],
    begin: Callable[[Path], Begun],
    joined: Path | None = None,
) -> tuple[Begun | None, str]:
    """(what `begin` makes of a run directory, a message for the user).

    The directory is `joined`, else a new one (or the job's) in `runs`, else one in the temporary
    folder. The result is None if `begin` raises OSError with each. The message is "" if the first
    choice worked. Directories made in vain are removed.
    """
    wanted, why = "", ""
    for place in (joined, runs, temporary_runs):
        if place is None:
            continue
        folder: Path | None = None
        made: Path | None = None
        try:
            if isinstance(place, Path):
                folder = directory = place
            else:
                folder = place()
                directory, new = join_run(folder, argv, os.environ)
                made = directory if new else None
            begun = begin(directory)
        except Exception as error:
            if made is not None:
                shutil.rmtree(made, ignore_errors=True)
            if not is_ours(error):
                raise
            wanted = wanted or str(folder or "the folder of runs")
            why = why or getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
            continue
        instead = f"{wanted} cannot be written ({why}); recording to {directory} instead"
        return begun, instead if wanted else ""
    return None, (
        f"nothing is recorded: no run directory can be made in {wanted} ({why}); set "
        "LOADERSCOPE_DIR to a writable folder"
    )
