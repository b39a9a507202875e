"""Where a run is recorded: in the folder asked for, in the temporary one where that takes no run,
or nowhere."""

from __future__ import annotations

import errno
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
    """What `begin` makes of a run directory: `joined`, else a new one (or the job's) in `runs`,
    else one under the temporary folder. None where it raises OSError with each. And what to tell
    the user: "" where the first was right.

    No run directory is left that was made for nothing.
    """
    wanted, why = "", ""
    for place in (joined, runs, temporary_runs):
        if place is None:
            continue
        folder, made = "", None
        try:
            if isinstance(place, Path):
                folder = str(place)
                directory = _existing(place)
            else:
                folder = str(place())
                directory, new = join_run(Path(folder), argv, os.environ)
                made = directory if new else None
            begun = begin(directory)
        except Exception as error:
            if made is not None:
                shutil.rmtree(made, ignore_errors=True)
            if not is_ours(error):
                raise
            wanted = wanted or folder or "the folder of runs"
            why = why or getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
            continue
        return (
            begun,
            f"{wanted} cannot be written ({why}); recording to {directory} instead"
            if wanted
            else "",
        )
    return None, (
        f"nothing is recorded: no run directory can be made in {wanted} ({why}); set "
        "LOADERSCOPE_DIR to a writable folder"
    )


def _existing(directory: Path) -> Path:
    if not directory.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(directory))
    return directory
