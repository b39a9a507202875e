"""Lets the processes of one job that are started separately, node by node, record into one run.

They meet by the job's name in the folder of runs, if they share it. The first one makes the run and
a symbolic link `.job-<digest>-<attempt>` to it, which is atomic on network file systems too. A node
or task takes part in a run once. What it starts next in the same job (a second script, a retry) is
the next attempt, and meets there what the others start next.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ...base.host import host_name
from ...store.rundir import create_run

ATTEMPTS = 10_000
NO_ID = ("", "none")  # torchrun's default: it names no job


class Job(NamedTuple):
    """`name` is common to all processes of the job, `part` is unique to this node or task."""

    name: str
    part: str


def job_of(environ: Mapping[str, str], command: Sequence[str]) -> Job | None:
    """The job of this process, or that `command` starts a part of. None if it has none, or one that
    cannot be told from the next."""
    host = host_name()
    elastic = environ.get("TORCHELASTIC_RUN_ID", "")
    if elastic not in NO_ID and "RANK" in environ:
        return Job(f"torchrun {elastic}", f"{host}-{environ['RANK']}")
    tasks = environ.get("SLURM_STEP_NUM_TASKS", "1")
    if {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID"} <= environ.keys() and tasks != "1":
        step = f"{environ['SLURM_JOB_ID']}.{environ['SLURM_STEP_ID']}"
        return Job(
            f"SLURM {step} {environ.get('SLURM_RESTART_COUNT', '0')}",
            f"{host}-{environ['SLURM_PROCID']}",
        )

    started = _options(command)
    if started.get("rdzv-id", "") not in NO_ID:
        return Job(f"torchrun {started['rdzv-id']}", f"{host}-node{started.get('node-rank', '')}")
    return None


def join_run(runs: Path, argv: list[str], environ: Mapping[str, str]) -> tuple[Path, bool]:
    """(the run of this process's job, whether it is new). Without a job, or in a folder without
    links, the run is its own. Raises OSError."""
    job = job_of(environ, argv)
    if job is None:
        return create_run(runs, argv), True
    digest, part = (hashlib.sha256(each.encode(errors="replace")).hexdigest()[:24] for each in job)
    for attempt in range(ATTEMPTS):
        link = runs / f".job-{digest}-{attempt}"
        made = None
        try:
            run = _linked(link)
            if run is None:
                made = run = create_run(runs, argv)
                os.symlink(made.name, link)
        except FileExistsError:  # another one was first
            if made is not None:
                shutil.rmtree(made, ignore_errors=True)
            made, run = None, _linked(link)
        except OSError:
            if made is not None:
                return made, True
            raise
        if run is not None:
            # The run may be deleted, or be one of an earlier attempt that has this part.
            with suppress(FileExistsError, FileNotFoundError):
                os.close(os.open(run / f"part-{part}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                return run, made is not None
    return create_run(runs, argv), True


def _linked(link: Path) -> Path | None:
    """The run that a link names, None if there is no link."""
    try:
        return link.parent / Path(os.readlink(link)).name
    except FileNotFoundError:
        return None


def _options(command: Sequence[str]) -> dict[str, str]:
    """torchrun's options in a command line, by hyphenated name, in both forms."""
    found = {}
    for at, word in enumerate(command):
        name, equals, value = word.lstrip("-").partition("=")
        if word.startswith("--"):
            found[name.replace("_", "-")] = value if equals else "".join(command[at + 1 : at + 2])
    return found
