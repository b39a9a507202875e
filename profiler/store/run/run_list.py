"""The runs of a folder, listed without reading their lanes."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from ...base.errors import RunUnreadable
from ...base.facts import EndedProcess
from ...base.liveness import Liveness, State, process_state
from ...base.metadata import clean
from ...base.tolerant import read_as
from ..rundir import runs_directory
from .run import outcome_of
from .run_finder import run_ids
from .run_reader import read_run_json, run_state


@dataclass(frozen=True)
class RunEntry:
    """One line of `loaderscope list`. `problem` is why the run cannot be read, None where it
    can."""

    id: str
    path: Path
    created_unix_ns: int | None
    argv: tuple[str, ...]
    state: str
    processes: int
    loaders: int
    size_bytes: int
    problem: str | None


def list_runs(runs: Path | None = None, limit: int | None = None) -> list[RunEntry]:
    """The runs of a folder, newest first, at most `limit`. Raises RunNotFound for a folder that
    cannot be read, never for what a run contains."""
    where = runs_directory() if runs is None else runs
    ids = run_ids(where)[::-1]
    return [_entry(where / name) for name in ids[:limit]]


def _entry(path: Path) -> RunEntry:
    size, loaders, described = _contents(path)
    try:
        data = read_run_json(path)
    except RunUnreadable as error:
        return RunEntry(
            clean(path.name),
            path,
            None,
            (),
            "unreadable",
            len(described),
            loaders,
            size,
            str(error),
        )
    liveness = Liveness()
    states: list[State] = []
    ended_by = []
    for process in described:
        try:
            facts = read_as(EndedProcess, process)
        except RunUnreadable:
            states.append("unknown")
            continue
        states.append(process_state(facts, liveness))
        ended_by.append(facts.ended_by)
    state = outcome_of(run_state(data, states, liveness), ended_by)
    return RunEntry(
        clean(path.name),
        path,
        data.created_unix_ns,
        data.argv,
        state,
        len(described),
        loaders,
        size,
        None,
    )


def _contents(path: Path) -> tuple[int, int, list[Path]]:
    """Bytes on disk, number of loaders, and the process descriptions."""
    size, loaders, processes = 0, 0, []
    for folder, _, files in os.walk(path):
        for file in files:
            try:
                size += os.lstat(os.path.join(folder, file)).st_size
            except OSError:
                continue
            loaders += bool(re.fullmatch(r"loader\d+\.json", file))
            if file == "process.json":
                processes.append(Path(folder, file))
    return size, loaders, processes
