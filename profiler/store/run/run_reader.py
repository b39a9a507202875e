"""Reading a run directory: what is whole is given, what is damaged is left out with a note."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct

from ...base import schema
from ...base.errors import RunUnreadable
from ...base.facts import FORMAT, EndedProcess, HostFacts, RunFacts, core_count
from ...base.liveness import Liveness, State, process_state
from ...base.metadata import clean
from ...base.schema import Schema
from ...base.tolerant import read_as
from ..flushing import flush
from ..gaps import INSIDE_WORKERS, told_by_worker
from ..lanes.columns import Columns, LaneSource, read_batches, read_lane
from ..lanes.segment_file import batch_lanes
from ..probe_totals import read_sampled_fetches
from ..rundir import system_stem
from ..stacks.stack_files import Collates, read_bursts
from ..stacks.stack_stages import collate_of
from .epoch_ends import EXHAUSTED, computing_until_iter, with_ends
from .loader_facts import LoaderFacts
from .loader_summary import summary_of
from .run import LoaderRun, ProcessRun, Recorded, Run, SystemRun, with_ranks_counted
from .run_finder import find_run
from .tuning import read_tuning

# A run has one folder a process and one a host; more entries than this are not read.
MAX_PARTS = 10_000
MAX_LOADERS = 10_000
LARGE = 16  # of this many processes, most are kept in totals where that is enough

_RAY_WORKER = re.compile(r"[/\\\\]ray[/\\\\].*default_worker\.py$")

Described = TypeVar("Described", RunFacts, EndedProcess, HostFacts, LoaderFacts)
P = TypeVar("P", bound=Recorded)
Choose = Callable[[list[ProcessRun]], Collection[Path]]


def open_run(name: str | os.PathLike[str] = "latest", runs: Path | None = None) -> Run:
    """Read the run called `name`: "latest", an id, the beginning of one, or a path.

    `runs` is the folder to look in (default: `runs_directory()`). Raises RunNotFound, and
    RunUnreadable for a directory that is corrupt, foreign, or written by a newer version. Damage
    inside is tolerated: what can be read is there, and `notes` says what is not.
    """
    return read_run(find_run(name, runs), Liveness())


def read_run(
    path: Path, liveness: Liveness, read: LaneSource = read_lane, choose: Choose | None = None
) -> Run:
    """The run in this directory. `liveness` says which processes are alive. Raises RunUnreadable.

    `read` gives a lane's content; one that follows a run while it goes on gives less than
    everything. With `choose`, of the many processes of a large job only those are kept whole that
    it chooses by the totals of all, and of the hosts only theirs.
    """
    flush(path)  # this process may be the one that records it
    notes: list[str] = []
    data = read_run_json(path, notes)
    samplers, folders = _parts(path)
    choose = choose if len(folders) >= LARGE else None

    def each(folders: Iterable[Path], read_one: Callable[[Path], P]) -> Iterator[P]:
        for folder in folders:
            try:
                yield read_one(folder)
            except RunUnreadable as error:
                notes.append(f"{error}: left out")

    if choose is None:
        processes = list(each(folders, lambda part: _read_process(part, liveness, read)))
    else:
        processes = list(
            each(folders, lambda part: _summed_up(_read_process(part, liveness, read)))
        )
        chosen = choose(processes)
        for at, process in enumerate(processes):
            if process.path in chosen:
                whole = _read_process(process.path, liveness, read)
                processes[at] = replace(whole, summaries=process.summaries)
        hosts = {
            system_stem(process.host)
            for process in processes
            if process.loaders and process.host is not None
        }
        samplers = [part for part in samplers if part.name.rpartition("-")[0] in hosts]
    # What tells a stack of collating from one of fetching.
    collates: Collates = tuple(
        (process.pid, loader.index, one)
        for process in processes
        for loader in process.loaders
        if (one := collate_of(loader.inspection.collate, loader.config)) is not None
    )
    systems = tuple(each(samplers, lambda part: _read_system(part, read, collates)))
    processes.sort(key=lambda p: (p.rank or 0, p.unix_ns or 0, p.pid))
    parts: tuple[Recorded, ...] = (*processes, *systems)
    notes += (note for part in parts for note in part.notes)
    return Run(
        path=path,
        **_shared(data, Run) | {"id": data.id or clean(path.name)},
        state=run_state(data, [process.state for process in processes], liveness),
        processes=with_ranks_counted(processes),
        systems=systems,
        notes=tuple(notes),
    )


def _shared(facts: Struct, kind: type[Recorded]) -> dict[str, Any]:
    """The fields of the file that the run has under the same names."""
    return {
        each.name: getattr(facts, each.name)
        for each in fields(kind)
        if each.name in facts.__struct_fields__
    }


def run_state(data: RunFacts, processes: list[State], liveness: Liveness) -> State:
    """The state of the whole, from its parts: one live process makes it live, else one crashed
    makes it crashed.

    Before any process has recorded, the process that created the run stands for it.
    """
    for state in ("live", "crashed", "unknown"):
        if state in processes:
            return state
    if processes:
        return "finished"
    begun = data.created_unix_ns / 1e9 if data.created_unix_ns is not None else None
    state = liveness.state(data.host, data.boot_id, data.pid, begun, exact=False)
    return "finished" if state == "crashed" else state


def read_run_json(path: Path, notes: list[str] | None = None) -> RunFacts:
    """The run's own description. Raises RunUnreadable: without it a directory is not a run.

    Impossible numbers are noted in `notes`.
    """
    try:
        return _checked(read_as(RunFacts, path / "run.json", notes), path / "run.json")
    except RunUnreadable as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
            shown = clean(path)
            raise RunUnreadable(f"{shown} is not a run directory: it has no run.json") from error
        raise


def glance(path: Path, liveness: Liveness) -> tuple[RunFacts, State, list[EndedProcess]]:
    """What a run's descriptions alone say: its own, its state, its processes'. Raises
    RunUnreadable."""
    data = read_run_json(path)
    states: list[State] = []
    processes = []
    for file in sorted(path.glob("p*/process.json")):
        try:
            processes.append(read_as(EndedProcess, file))
            states.append(process_state(processes[-1], liveness))
        except RunUnreadable:
            states.append("unknown")
    return data, run_state(data, states, liveness), processes


def _checked(data: Described, path: Path) -> Described:
    """Raises RunUnreadable for a file of another format version."""
    version = data.format
    if version is not None and version > FORMAT:
        by = f"was written by a newer Loaderscope (format {version}): upgrade to read it"
        raise RunUnreadable(f"{clean(path)} {by}")
    if version != FORMAT:
        raise RunUnreadable(f"{clean(path)} is corrupt: it does not say format {FORMAT}")
    return data


def _optional(kind: type[Described], path: Path, notes: list[str]) -> Described:
    """A description that may be missing or torn; a newer one makes the part unreadable."""
    try:
        data = read_as(kind, path, notes)
    except RunUnreadable as error:
        notes.append(str(error))
        return kind()
    return _checked(data, path)


def _parts(path: Path) -> tuple[list[Path], list[Path]]:
    """The folders of samplers and of processes."""
    try:
        with os.scandir(path) as entries:
            found = (
                Path(entry.path)
                for entry in entries
                if re.fullmatch(r"p\d{1,12}-\d{1,9}|system-.+", entry.name) and entry.is_dir()
            )
            parts = sorted(islice(found, MAX_PARTS))
    except OSError as error:
        raise RunUnreadable(f"{clean(path)} cannot be read: {error.strerror or error}") from error
    samplers, processes = ([each for each in parts if each.name[0] == kind] for kind in "sp")
    return samplers, processes


def _read_process(path: Path, liveness: Liveness, read: LaneSource) -> ProcessRun:
    notes: list[str] = []
    data = _optional(EndedProcess, path / "process.json", notes)
    # A description torn by a crash says no id; the folder's name does too.
    pid = int(path.name[1:].split("-")[0]) if data.pid is None else data.pid
    workers = _lane(read, path, "workers", schema.WORKER, notes)
    loaders = _read_loaders(path, pid, data.rank, read)
    notes += (f"{loader.name}: {note}" for loader in loaders for note in loader.notes)
    return ProcessRun(
        **_shared(data, ProcessRun)
        | {"pid": pid, "affinity": data.cores, "cpus": data.core_numbers},
        path=path,
        state=_state(data, liveness, loaders),
        loaders=tuple(loaders),
        workers=workers,
        notes=tuple(notes),
    )


def _summed_up(process: ProcessRun) -> ProcessRun:
    """The totals in place of what was read: it may be one of a thousand."""
    summaries = tuple(map(summary_of, process.loaders))
    return replace(process, summaries=summaries, loaders=(), workers=Columns.empty(schema.WORKER))


def _state(data: EndedProcess, liveness: Liveness, loaders: list[LoaderRun]) -> State:
    """Ray ends its workers from outside once their work is done: of those, only one in the middle
    of an epoch has crashed."""
    state = process_state(data, liveness)
    ray = bool(data.argv) and _RAY_WORKER.search(data.argv[0]) is not None
    through = all((each.epochs["how"] == EXHAUSTED).all() for each in loaders)
    return "finished" if state == "crashed" and ray and loaders and through else state


def _read_loaders(path: Path, pid: int, rank: int | None, read: LaneSource) -> list[LoaderRun]:
    """The loaders of the process with this folder: those that are described, or have batches."""
    names = list[str]()
    with suppress(OSError):
        names = os.listdir(path)
    described = (re.fullmatch(r"loader(\d{1,9})\.json", name) for name in names)
    lanes: dict[int, list[str]] = {int(match[1]): [] for match in described if match}
    for index, lane in batch_lanes(names):
        lanes.setdefault(index, []).append(lane)
    each = sorted(lanes.items())[:MAX_LOADERS]
    return [_read_loader(path, index, lanes_, pid, rank, read) for index, lanes_ in each]


def _read_loader(
    path: Path, index: int, lanes: list[str], pid: int, rank: int | None, read: LaneSource
) -> LoaderRun:
    notes: list[str] = []
    data = _optional(LoaderFacts, path / f"loader{index}.json", notes)
    content = read_batches(path, lanes, read)
    batches = content.columns
    notes += content.notes
    epochs = _lane(read, path, f"epochs{index}", schema.EPOCH, notes)
    if not content.older:
        epochs = with_ends(epochs, batches, data.config)
        batches = computing_until_iter(epochs, batches)
    bare, tuning = told_by_worker(path, index), read_tuning(path, index, notes)
    reasons = dict(data.reasons)
    if bare is not None:
        reasons |= dict.fromkeys(INSIDE_WORKERS, f"workers are not measured: {bare}")
    if (data.config.get("batching"), data.config.get("dataset_kind")) == ("none", "iterable"):
        # One was asked for and one came, of which nobody knows how many samples it holds.
        batches = Columns(
            {**batches, "samples": np.full(batches.rows, -1, batches["samples"].dtype)},
            batches.rows,
        )
        reasons.setdefault(
            "samples",
            "batch_size=None: the data set makes the batches, and does not say of how many",
        )
    return LoaderRun(
        index=index,
        name=data.name or f"loader {index}",
        kind=data.kind,
        pid=pid,
        rank=rank,
        config=data.config,
        reasons=reasons,
        hook_ns=data.overhead.hook_ns,
        batches=batches,
        epochs=epochs,
        older=content.older,
        notes=tuple(notes) + data.notes,
        inspection=data.inspection,
        looks=read_sampled_fetches(path, index, data.kind, reasons),
        bare=bare,
        tuning=tuning,
        device_steps=data.device_steps,
        made=data.made,
    )


def _read_system(path: Path, read: LaneSource, collates: Collates) -> SystemRun:
    notes: list[str] = []
    bursts, unreadable = read_bursts(path, collates)
    notes += unreadable
    starting = not (path / "host.json").exists()  # the sampler begins a moment after the run
    data = HostFacts() if starting else _optional(HostFacts, path / "host.json", notes)
    kinds = schema.MACHINE, schema.PROCESS, schema.GPU
    lanes: dict[str, Any] = {kind.name: _lane(read, path, kind.name, kind, notes) for kind in kinds}
    return SystemRun(
        **_shared(data, SystemRun) | {"affinity": core_count(data.affinity)},
        path=path,
        cgroup_cpu_quota=data.cgroup.cpu_quota,
        cgroup_mem_limit_bytes=data.cgroup.mem_limit_bytes,
        **lanes,
        notes=tuple(notes),
        bursts=bursts,
    )


def _lane(read: LaneSource, path: Path, name: str, kind: Schema, notes: list[str]) -> Columns:
    content = read(path, name, kind)
    notes += content.notes
    return content.columns
