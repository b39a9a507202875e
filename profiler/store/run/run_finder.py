"""Finding runs by name."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ...base.errors import RunNotFound
from ...base.metadata import clean
from ..rundir import runs_directory

# YYYYmmdd-HHMMSS-xxxxxx: ids sort by the time the run began.
ID = re.compile(r"\d{8}-\d{6}-[0-9A-Za-z]{1,16}")


def run_ids(runs: Path) -> list[str]:
    """The ids of the runs in this folder, oldest first; none where there is no such folder. Raises
    RunNotFound."""
    try:
        with os.scandir(runs) as entries:
            found = [entry.name for entry in entries if ID.fullmatch(entry.name) and entry.is_dir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunNotFound(
            f"the folder of runs {clean(runs)} cannot be read: {error.strerror or error}"
        ) from error
    return sorted(found)


def find_run(name: str | os.PathLike[str], runs: Path | None = None) -> Path:
    """The directory of "latest", an id, the unique beginning of one, or a path. Raises
    RunNotFound."""
    where = runs_directory() if runs is None else runs
    asked = os.fspath(name)
    if not asked or "\0" in asked:
        raise RunNotFound(f"{clean(asked, 80)!r} is not the name of a run")
    shown = clean(asked, 200)
    is_path = not isinstance(name, str) or asked.startswith((".", "~")) or os.sep in asked
    missing = f"there is no directory {shown}"
    try:
        path = Path(asked).expanduser()
        if not is_path:
            ids = run_ids(where)
            if asked == "latest" and ids:
                return where / ids[-1]
            if asked == "latest":
                raise RunNotFound(
                    f"nothing has been recorded yet in {clean(where)}: try `loaderscope run "
                    "your_script.py`"
                )
            fitting = [id_ for id_ in ids if id_.startswith(asked)]
            if len(fitting) == 1 or asked in ids:
                return where / (asked if asked in ids else fitting[0])
            if fitting:
                some = f"{len(fitting)} runs ({', '.join(fitting[-3:])})"
                raise RunNotFound(f"{shown} is the beginning of {some}: type more of the id")
            missing = f"there is no run {shown} in {clean(where)}: see `loaderscope list`"
        if path.is_dir():
            return path
        if path.exists():
            missing = f"{shown} is a file: a run is a folder, with run.json in it"
    except (OSError, ValueError, RuntimeError) as error:
        raise RunNotFound(f"{shown} cannot be looked up: {clean(error, 200)}") from error
    raise RunNotFound(missing)
