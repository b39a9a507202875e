"""Finding runs by name."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ...base.errors import RunNotFound, RunUnreadable
from ...base.facts import RunFacts
from ...base.metadata import clean
from ...base.tolerant import read_as
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
    seconds = sorted(found)
    if (
        len(seconds) > 1 and seconds[-1][:15] == seconds[-2][:15]
    ):  # begun in one second: the clock decides
        newest = [name for name in seconds if name[:15] == seconds[-1][:15]]
        seconds[-len(newest) :] = sorted(newest, key=lambda name: (_created(runs / name), name))
    return seconds


def _created(path: Path) -> int:
    try:
        return read_as(RunFacts, path / "run.json").created_unix_ns or 0
    except RunUnreadable:
        return 0


def find_run(name: str | os.PathLike[str], runs: Path | None = None) -> Path:
    """The directory of "latest", an id, the unique beginning of one, or a path. Raises
    RunNotFound."""
    where = runs_directory() if runs is None else runs
    asked = os.fspath(name)
    if not asked or "\0" in asked:
        raise RunNotFound(f"{clean(asked, 80)!r} is not the name of a run")
    shown = clean(asked, 200)
    try:
        if not isinstance(name, str) or _is_path(asked):
            path = Path(asked).expanduser()
            if path.is_dir():
                return path
            raise RunNotFound(
                _is_a_file(shown) if path.exists() else f"there is no directory {shown}"
            )
        ids = run_ids(where)
        if asked == "latest":
            if ids:
                return where / ids[-1]
            raise RunNotFound(
                f"nothing has been recorded yet in {clean(where)}: try `loaderscope run "
                "your_script.py`"
            )
        if asked in ids:
            return where / asked
        fitting = [id_ for id_ in ids if id_.startswith(asked)]
        if len(fitting) == 1:
            return where / fitting[0]
        if len(fitting) > 1:
            some = ", ".join(fitting[-3:])
            raise RunNotFound(
                f"{shown} is the beginning of {len(fitting)} runs ({some}): type more of the id"
            )
        path = Path(asked)
        if path.is_dir():
            return path
        if path.exists():
            raise RunNotFound(_is_a_file(shown))
    except (OSError, ValueError, RuntimeError) as error:
        raise RunNotFound(f"{shown} cannot be looked up: {clean(error, 200)}") from error
    raise RunNotFound(
        f"there is no run {shown} in {clean(where)}: `loaderscope list` shows those there are"
    )


def _is_a_file(shown: str) -> str:
    return f"{shown} is a file: a run is a folder, with run.json in it"


def _is_path(name: str) -> bool:
    return name.startswith((".", "~")) or "/" in name or os.sep in name
