"""Runs made up for tests, written through real lanes: a test states only what it is about."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from loaderscope.profiler.base import schema
from loaderscope.profiler.base.schema import Schema
from loaderscope.profiler.store.lanes.lane import Budget, Lane
from loaderscope.profiler.store.run.run import LoaderRun, Run
from loaderscope.profiler.store.run.run_reader import open_run

RUN_ID = "20250131-091500-abc123"
MS = 1_000_000
T0 = 5_000_000_000_000  # some hours after a boot
STARTED_NS = 1_738_311_300_000_000_000  # since 1970
HOST = {"format": 1, "host": "elsewhere", "boot_id": "boot", "clock_ns": T0}
CONFIG = {"dataset": "train.Pictures", "batch_size": 4, "num_workers": 0, "pin_memory": False}
CONFIG |= {"prefetch_factor": None, "persistent_workers": False, "drop_last": False}
CONFIG["sampler"] = "torch.utils.data.sampler.RandomSampler"
CONFIG["collate_fn"] = "torch.utils.data._utils.collate.default_collate"


def values_of(schema_: Schema, row: Mapping[str, Any]) -> list[float]:
    """A row's values in the schema's order, without `seq`; what it does not name is unmeasured."""
    unknown = set(row) - {f.name for f in schema_.fields}
    assert not unknown, unknown
    values: list[float] = []
    for field in schema_.fields[1:]:
        given = row.get(field.name)
        unmeasured = math.nan if field.code == "f" else -1
        values.append(unmeasured if given is None else given)
    return values


def write_lane(
    directory: Path,
    name: str,
    schema_: Schema,
    rows: Iterable[Mapping[str, Any]],
    max_bytes: int = 1 << 30,
) -> Lane:
    """Write rows as a recording process would; with a small `max_bytes` the oldest are removed."""
    notes: list[str] = []
    lane = Lane(directory, name, schema_, Budget(max_bytes), notes.append, trimmed=True)
    for row in rows:
        lane.append(*values_of(schema_, row))
    assert not notes, notes
    return lane


def loop(
    batches: int,
    wait_ms: float = 1.0,
    compute_ms: float = 9.0,
    *,
    epoch: int = 0,
    start_ns: int = T0,
    first_wait_ms: float | None = None,
    **columns: Any,
) -> list[dict[str, Any]]:
    """An epoch of a steady loop; columns as constants, or functions of (number, t_ns, wait_ns)."""
    rows = []
    t = start_ns
    for number in range(batches):
        wait = round((first_wait_ms if number == 0 and first_wait_ms is not None else wait_ms) * MS)
        compute = round(compute_ms * MS)
        row: dict[str, Any] = {"t_ns": t, "wait_ns": wait, "samples": 4, "epoch": epoch}
        for name, value in columns.items():
            row[name] = value(number, t, wait) if callable(value) else value
        if number == batches - 1:
            row.setdefault("compute_ns", compute)
        rows.append(row)
        t += wait + compute
    return rows


class RunBuilder:
    """A run directory. `run.process().loader(rows)` is enough for most tests."""

    def __init__(self, runs: Path, id_: str = RUN_ID, **facts: Any) -> None:
        self.path = runs / id_
        self.path.mkdir(parents=True)
        told = {"id": id_, "created_unix_ns": STARTED_NS, "pid": 4000, "loaderscope": "0.1.0"}
        told |= {"argv": ["train.py", "--lr", "0.1"], "python": "3.12.1", "platform": "Linux-6.8"}
        self.facts = {**HOST, **told, **facts}
        (self.path / "run.json").write_text(json.dumps(self.facts))

    def process(
        self, pid: int = 4000, number: int = 0, ended: bool = True, **facts: Any
    ) -> ProcessBuilder:
        return ProcessBuilder(self.path / f"p{pid}-{number}", pid, ended, facts)

    def system(
        self,
        machine: Iterable[Mapping[str, Any]] = (),
        process: Iterable[Mapping[str, Any]] = (),
        gpu: Iterable[Mapping[str, Any]] = (),
        **facts: Any,
    ) -> Path:
        path = self.path / "system-elsewhere-0"
        path.mkdir()
        cgroup = {"version": 2, "cpu_quota": None, "mem_limit_bytes": None}
        host = {"unix_ns": 0, "cores_logical": 8, "affinity": 8, "cgroup": cgroup}
        host |= {"mem_total_bytes": 32_000_000_000, "shm_total_bytes": 16_000_000_000}
        (path / "host.json").write_text(json.dumps({**HOST, **host, **facts}))
        write_lane(path, "machine", schema.MACHINE, machine)
        write_lane(path, "process", schema.PROCESS, process)
        write_lane(path, "gpu", schema.GPU, gpu)
        return path


class ProcessBuilder:
    """One recording process's folder."""

    def __init__(self, path: Path, pid: int, ended: bool, facts: Mapping[str, Any]) -> None:
        self.path = path
        path.mkdir()
        told = {"pid": pid, "create_time": 1000.0, "unix_ns": STARTED_NS, "argv": ["train.py"]}
        told |= {"python": "3.12.1", "torch": "2.13.0", "start_method": "fork"}
        told |= {"affinity": 8, "torch_threads": 4}
        self.facts: dict[str, Any] = {**HOST, **told, **facts}
        if ended:
            self.facts["ended_clock_ns"] = T0 + 10**12
        (path / "process.json").write_text(json.dumps(self.facts))
        self.loaders = 0

    def loader(
        self,
        *lanes: Iterable[Mapping[str, Any]],
        epochs: Iterable[Mapping[str, Any]] = (),
        config: Mapping[str, Any] | None = None,
        max_bytes: int = 1 << 30,
        **facts: Any,
    ) -> int:
        """Add a loader with one lane a consuming thread; returns its index."""
        index, self.loaders = self.loaders, self.loaders + 1
        told = {"format": 1, "index": index, "name": "Pictures", "kind": "dataloader"}
        told |= {"config": {**CONFIG, **(config or {})}, "overhead": {"hook_ns": 800.0}, **facts}
        (self.path / f"loader{index}.json").write_text(json.dumps(told))
        for number, rows in enumerate(lanes):
            write_lane(self.path, f"batches{index}x{number}", schema.BATCH, rows, max_bytes)
        write_lane(self.path, f"epochs{index}", schema.EPOCH, epochs)
        return index


def opened(
    runs: Path,
    *lanes: list[dict[str, Any]],
    process: Mapping[str, Any] | None = None,
    system: Mapping[str, Any] | None = None,
    **facts: Any,
) -> Run:
    """A run of one process with one loader, as read; with facts of its process and its system."""
    run = RunBuilder(runs)
    run.process(**(process or {})).loader(*lanes, **facts)
    if system is not None:
        run.system(**system)
    return open_run(run.path)


def loader_of(runs: Path, *lanes: list[dict[str, Any]], **facts: Any) -> LoaderRun:
    return opened(runs, *lanes, **facts).loaders[0]


def epoch_row(
    rows: list[dict[str, Any]], startup_ms: float | None = None, **values: Any
) -> dict[str, Any]:
    """The epoch's row that belongs to the rows of `loop`."""
    first, last = rows[0], rows[-1]
    handed = first["t_ns"] + first["wait_ns"]
    begun = first["t_ns"] if startup_ms is None else handed - round(startup_ms * MS)
    return {
        "t_iter_ns": begun,
        "t_first_ns": handed,
        "t_end_ns": last["t_ns"] + last["wait_ns"] + last["compute_ns"],
        "batches": len(rows),
        "epoch": first["epoch"],
        "instance": 0,
        "num_workers": 0,
        "how": 1,
        **values,
    }
