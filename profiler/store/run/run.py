"""A run directory as one frozen value: what was measured, whether the run is live, finished or
crashed.

    run = open_run("latest")
    loader = run.loaders[0]
    loader.batches["wait_ns"]     # int64, -1 = not measured
    loader.column("wait_ns")      # float64, NaN = not measured

A `Run` is a snapshot: everything is read when it is opened, and later batches need a new
`open_run`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from ...base.arrays import Floats
from ...base.facts import GpuFacts
from ...base.liveness import State
from ...base.metadata import Scalars
from ...base.torch_parts import DEFAULT_PREFETCH
from ..inspection import Inspection
from ..lanes.columns import Columns
from ..making import Making
from ..sampled_fetches import SampledFetches
from ..stacks.stack_samples import StackCapture
from .device_steps import DeviceSteps
from .loader_summary import LoaderSummary
from .tuning import Tuned

Outcome = Literal["live", "finished", "interrupted", "failed", "crashed", "unknown"]


@dataclass(frozen=True)
class LoaderRun:
    """One loader of one process. `batches` has a row a batch still kept; `older` is the number of
    those before."""

    index: int
    name: str
    kind: Literal["dataloader", "iterable"]
    pid: int
    rank: int | None
    config: Scalars
    reasons: Mapping[str, str]  # column or metric → why it was not measured
    # Cost of the hooks a batch, without the recording itself (that is own_ns).
    hook_ns: float | None
    batches: Columns = field(repr=False)
    epochs: Columns = field(repr=False)
    older: int
    notes: tuple[str, ...]
    inspection: Inspection = field(default=Inspection(), repr=False)
    looks: SampledFetches = field(default=SampledFetches(), repr=False)
    bare: str | None = None  # why its workers could not be measured
    tuning: Tuned | None = field(default=None, repr=False)  # None: its settings were not tuned
    device_steps: DeviceSteps | None = None  # None: none of its steps on a device were looked at
    made: Making = field(default=Making(), repr=False)  # where; no lines where that was not seen

    @property
    def count(self) -> int:
        """Batches handed over, older ones included."""
        return self.batches.rows + self.older

    def as_coded(self) -> LoaderRun:
        """With those batches alone that were made with the settings of the code; as it is, if no
        others were tried."""
        if self.tuning is None:
            return self
        made = self.tuning.as_coded(self.batches["t_ns"])
        columns = Columns(
            {name: values[made] for name, values in self.batches.items()}, int(made.sum())
        )
        return replace(self, batches=columns)

    @property
    def num_workers(self) -> int:
        """Workers as configured; 0 where it is unknown."""
        value = self.config.get("num_workers")
        return value if isinstance(value, int) and value > 0 else 0

    @property
    def prefetch_factor(self) -> int:
        """Batches a worker makes ahead: as configured, or torch's own number."""
        value = self.config.get("prefetch_factor")
        return value if isinstance(value, int) and value > 0 else DEFAULT_PREFETCH

    def column(self, name: str) -> Floats:
        """One value a batch, NaN where it was not measured. KeyError for an unknown name."""
        return self.batches.floats(name)


@dataclass(frozen=True)
class Recorded:
    """What a run, its processes and its hosts have in common. `notes` say what could not be
    read."""

    path: Path
    host: str | None
    boot_id: str | None
    clock_ns: int | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class ProcessRun(Recorded):
    """One recording process of the run, with the loaders it iterated."""

    pid: int
    create_time: float | None
    unix_ns: int | None
    argv: tuple[str, ...]
    rank: int | None
    local_rank: int | None
    world_size: int | None
    local_world_size: int | None
    python: str | None
    torch: str | None
    start_method: str | None
    affinity: int | None  # cores it may run on
    torch_threads: int | None
    fd_limit: int | None  # open files it may hold
    device: str | None
    reasons: Mapping[str, str]
    ended_clock_ns: int | None
    state: State
    loaders: tuple[LoaderRun, ...]
    workers: Columns = field(repr=False)
    ended_by: str | None = None  # the type of the error that ended the program
    # Who said the rank: "torch.distributed", "sampler", or a launcher.
    rank_source: str | None = None
    # Those of `affinity`; empty where not known.
    cpus: frozenset[int] = field(default=frozenset(), repr=False)
    # Its loaders in totals, where ranks are many: `loaders` of most are not kept.
    summaries: tuple[LoaderSummary, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class SystemRun(Recorded):
    """What the sampler of one host saw. Columns as in `profiler.base.schema`: machine,
    process, gpu."""

    cores_logical: int | None
    affinity: int | None
    mem_total_bytes: int | None
    shm_total_bytes: int | None
    cgroup_cpu_quota: float | None  # cores
    cgroup_mem_limit_bytes: int | None
    gpus: tuple[GpuFacts, ...]
    reasons: Mapping[str, str]
    machine: Columns = field(repr=False)
    process: Columns = field(repr=False)
    gpu: Columns = field(repr=False)
    bursts: tuple[StackCapture, ...] = field(default=(), repr=False)

    def ran(self, process: ProcessRun) -> bool:
        """Whether this is the host of that process; what is unknown of either is not compared."""
        return all(
            None in (a, b) or a == b
            for a, b in ((self.host, process.host), (self.boot_id, process.boot_id))
        )


@dataclass(frozen=True)
class Run(Recorded):
    """One recorded run. `state` is live, finished, crashed, or unknown where only another machine
    could tell."""

    id: str
    created_unix_ns: int | None
    argv: tuple[str, ...]
    python: str | None
    platform: str | None
    loaderscope: str | None
    pid: int | None
    state: State
    processes: tuple[ProcessRun, ...]
    systems: tuple[SystemRun, ...]

    @property
    def outcome(self) -> Outcome:
        """`state`, but of a finished run "interrupted" if Ctrl-C ended it, "failed" if an error
        did."""
        return outcome_of(self.state, [process.ended_by for process in self.processes])

    @property
    def loaders(self) -> tuple[LoaderRun, ...]:
        """The loaders of all processes, in the order in which they were first used."""
        return tuple(loader for process in self.processes for loader in process.loaders)

    @property
    def first_host(self) -> SystemRun | None:
        """The first host, one that was sampled before others; None without a sampler."""
        return _first(self.systems)

    def samplers_of(self, process: ProcessRun) -> tuple[SystemRun, ...]:
        """What each sampler of this process's host saw."""
        return tuple(each for each in self.systems if each.ran(process))

    def host_of(self, process: ProcessRun) -> SystemRun | None:
        """The host this process ran on: what the first of its samplers that took a sample saw."""
        return _first(self.samplers_of(process))


def outcome_of(state: State, ended_by: Iterable[str | None]) -> Outcome:
    """Of a run in this state; `ended_by` is what its processes say."""
    errors = {error for error in ended_by if error}
    if state != "finished" or not errors:
        return state
    return "interrupted" if KeyboardInterrupt.__name__ in errors else "failed"


def _first(systems: tuple[SystemRun, ...]) -> SystemRun | None:
    return next((each for each in systems if each.machine.rows), next(iter(systems), None))


def with_ranks_counted(processes: Iterable[ProcessRun]) -> tuple[ProcessRun, ...]:
    """The processes, with what a launcher left unset: their number of ranks on the host, and their
    local rank where the whole job is on one host."""
    known = tuple(processes)
    ranks: dict[object, set[int]] = defaultdict(set)
    for process in known:
        if process.rank is not None:
            ranks[process.host, process.boot_id].add(process.rank)
    return tuple(_counted(each, len(ranks[each.host, each.boot_id])) for each in known)


def _counted(process: ProcessRun, here: int) -> ProcessRun:
    if process.rank is None:
        return process
    size, local = process.local_world_size, process.local_rank
    alone = local is None and here == process.world_size
    return replace(
        process,
        local_world_size=here if size is None else size,
        local_rank=process.rank if alone else local,
    )
