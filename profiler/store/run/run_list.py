"""The runs of a folder, listed without reading their lanes."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ...base.errors import RunUnreadable
from ...base.facts import RunFacts
from ...base.liveness import Liveness
from ...base.metadata import clean
from ..rundir import runs_directory
from .run import outcome_of
from .run_finder import run_ids
from .run_reader import glance


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


def list_runs(runs: Path | None, limit: int | None = None) -> list[RunEntry]:
    """The runs of a folder, newest first, at most `limit`. Raises RunNotFound for a folder that
    cannot be read, never for what a run contains."""
    where = runs_directory() if runs is None else runs
    ids = run_ids(where)[::-1]
    return [_entry(where / name) for name in ids[:limit]]


def _entry(path: Path) -> RunEntry:
    size = loaders = processes = 0
    for folder, _, files in os.walk(path):
        for file in files:
            with suppress(OSError):
                size += os.lstat(os.path.join(folder, file)).st_size
                loaders += re.fullmatch(r"loader\d+\.json", file) is not None
                processes += file == "process.json"
    data, state, problem = RunFacts(), "unreadable", None
    try:
        data, known, described = glance(path, Liveness())
        state = outcome_of(known, [each.ended_by for each in described])
    except RunUnreadable as error:
        problem = str(error)
    told = data.created_unix_ns, data.argv
    return RunEntry(clean(path.name), path, *told, state, processes, loaders, size, problem)
