"""The `Report`: what a run means, as frozen values with their units in their names. JSON in and
out.

A figure that was not measured is None, and the `reason` or `reasons` next to it says why. Shares
are fractions of 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from typing import Any, Literal

from ...profiler.base.metadata import Scalars
from .codec import dump, load
from .evidence import Figure
from .ranges import Range as Range
from .rank_model import Ranks
from .tuning_model import Tuning

SCHEMA = 2
# From this part of all cores on, and of one core, other programs' work shows in the run's times.
OTHERS_INFLATE, LEAST_OTHERS = 0.2, 0.4

# None: not measured, or not known.
Measured = float | None
Counted = int | None
Verdict = Literal["input-bound", "compute-bound", "balanced", "too-short"]
Confidence = Literal["high", "medium", "low"]
Effort = Literal["one argument", "a few lines", "a conversion"]


@dataclass(frozen=True)
class RunInfo:
    """Which run, where and when. `wall_s` is from the first `iter()` to the last thing recorded."""

    id: str
    path: str
    # "interrupted": by Ctrl-C; "failed": by an error of the program; "crashed": without a word
    state: Literal["live", "finished", "interrupted", "failed", "crashed", "unknown"]
    created_unix_ns: Counted
    wall_s: Measured
    argv: tuple[str, ...]
    host: str | None
    platform: str | None
    python: str | None
    torch: str | None
    loaderscope: str | None
    processes: int
    world_size: Counted
    devices: tuple[str, ...]


@dataclass(frozen=True)
class Stage:
    """One stage's times per batch, in microseconds.

    `share` is the stage's total over the total of all steps. Stages that run in parallel (fetch in
    four workers) may exceed 1. `count` is the number of batches it was measured on. 0 means not
    measured, and `reason` says why; a reason next to figures says how to read them.
    """

    count: int
    mean_us: Measured
    p50_us: Measured
    p95_us: Measured
    p99_us: Measured
    share: Measured
    total_s: Measured
    reason: str | None = None


@dataclass(frozen=True)
class Cause:
    """A part of the waiting: seconds, and the share of all waiting."""

    seconds: float
    share: float


@dataclass(frozen=True)
class Waiting:
    """Where the time inside `next()` came from. The causes add up to `total_s`.

    `work` divides `workers-busy` (waiting for workers that were still making earlier batches) by
    what workers spend their time on, and adds the fetching and collating of the awaited batch
    itself: its values are shares of all waiting, to be read as "a worker was doing this while the
    loop waited".

    `fetch_idle_share` is 1 - CPU / wall; `fetch_core_wait_share` is the part of fetch's wall time
    in which it was ready to run and no core was free. What is left of the idle share is I/O, locks
    and the like.
    """

    batches: int
    total_s: float
    causes: Mapping[str, Cause]
    work: Mapping[str, float]
    fetch_idle_share: Measured  # of wall time, not computing: I/O, locks, other processes
    fetch_core_wait_share: Measured = None


@dataclass(frozen=True)
class Basis:
    """What the verdict rests on.

    `stall_share` is the part of the steady steps that loading cost (the first batch of each epoch
    is left out), with its 95 % range; `epoch_start_share` is the part of all time lost to epoch
    starts after the first.
    """

    sentence: str
    confidence: Confidence
    steady_batches: int
    stall_share: Measured
    stall_share_low: Measured
    stall_share_high: Measured
    epoch_start_share: Measured
    lost: Literal["stall", "wait"]


@dataclass(frozen=True)
class Doing:
    """What threads did in a part of their stack samples: computed, or waited.

    `kind` is one of `WAITS` in profiler/store/stacks/stack_samples.py, `what` the file, peer or
    child where most of it is for the same. `processes`: how many of those sampled waited for the
    same lock. `share` is of the samples of which it is known.
    """

    kind: str
    what: str | None
    processes: int
    share: float


@dataclass(frozen=True)
class Finding:
    """A part of what the loop waits for: a line of the user's own, a call, or a whole stage.

    `text` is the source of the line, or the name of what was called. `call` is the function below
    the line that takes most of it. `share` is the part of the stage's time, with the range that
    holds it 19 times in 20 (Wilson's interval of stack samples); `waiting_share` is the part of all
    waiting. Stage "transfer" is from worker to loop (`text`: what of a batch takes most of it),
    "other" the DataLoader's own work, "unknown" that of an iterable that is no DataLoader. Of
    "compute", what the loop runs of the data set outside `next()`, both shares are of all time.
    `factor` is what the loop would gain if this cost nothing, None where that cannot be predicted.
    """

    stage: str  # fetch, collate, index, compute, transfer, pin, startup, other or unknown
    text: str | None
    place: str | None  # "data.py:610"
    call: str | None
    share: Range
    waiting_share: float
    factor: Range | None
    doing: tuple[Doing, ...] = ()  # what was done there, the most frequent first


@dataclass(frozen=True)
class Change:
    """What to change: DataLoader arguments, and code to paste. `diff`: the same as a patch of the
    user's own source, None where it was not asked for or cannot be made."""

    params: Scalars
    code: str
    diff: str | None = None


@dataclass(frozen=True)
class Recommendation:
    """One piece of advice with its evidence and its predicted effect.

    `kind` says whether it is about speed, about correct training ("correctness") or about not
    crashing ("safety"): the last two are given at any speed. `measured` is the true factor, tried
    by `loaderscope tune`, with `measured_range` as its range; None with a range is a trial that was
    too short to tell.
    """

    rule: str
    title: str
    why: str
    evidence: Mapping[str, Figure]
    predicted: Range
    measured: Measured
    change: Change
    caveat: str | None
    doc: str | None
    kind: Literal["speed", "correctness", "safety"] = "speed"
    measured_range: Range | None = None
    measured_s: Measured = None  # how long it was tried
    effort: Effort | None = None  # None in reports written before there were plans
    tried: str | None = None  # the outcome of the trial: proven, not faster, undecided


@dataclass(frozen=True)
class PlanStep:
    """A recommendation to follow: `advice` is its place in `recommendations`, from 0.

    `together` is what this step and all before it do, `computing_share` the part of the time the
    loop then computes.
    """

    advice: int
    together: Range
    computing_share: Measured


@dataclass(frozen=True)
class LeftOut:
    """A recommendation that the plan leaves out: why, and because of which step (the place of its
    recommendation).

    `excluded`: both cannot be made; else it is not worth making after that step.
    """

    advice: int
    step: int
    excluded: bool
    why: str


@dataclass(frozen=True)
class Plan:
    """The recommendations in the order in which to follow them, predicted together, and where to
    stop."""

    steps: tuple[PlanStep, ...]
    left_out: tuple[LeftOut, ...]
    stop: str | None  # how it is after the last step: "the loop …"; None where that is not known


@dataclass(frozen=True)
class HotSpot:
    """A function, and the part of its stage's samples it was in. Shares are of the stage's samples.

    `share` counts the samples in which it was the innermost frame, `total_share` those in which it
    or anything it called was running; `[low, high]` is the 95 % range of `total_share` (Wilson's
    interval). `library` is the distribution or package the code belongs to ("PIL",
    "numpy"), None for the user's own code, which `own` marks. `called_from` is the innermost line
    of the user's own that led there most often ("patches.py:41"). `text` is the source of an
    own line, where it could be had. An own line's `share` includes the compiled code that it calls.
    """

    # Types are written out: the columns of a Parquet table follow them.
    function: str
    file: str | None
    line: int | None
    library: str | None
    own: bool
    share: float
    total_share: float
    low: float
    high: float
    called_from: str | None = None
    text: str | None = None
    doing: tuple[Doing, ...] = ()  # of an own line: in its samples that no other own line is below


@dataclass(frozen=True)
class FlameNode:
    """One node of a flame graph: a frame below `parent` (the node's place in the list, -1 for the
    outermost)."""

    function: str
    file: str | None
    line: Counted
    own: bool
    parent: int
    samples: int  # in which it was on the stack, inner frames included


@dataclass(frozen=True)
class CodeStage:
    """What the samples of one stage show. `gil_share` is the part of them that held the GIL, None
    if not measured."""

    samples: int
    gil_share: Measured
    hot: tuple[HotSpot, ...]  # by `share`, innermost frames
    lines: tuple[HotSpot, ...]  # own ones, by `total_share`; `function`, `line`: the call's
    libraries: Mapping[str, float]  # library → share by innermost frame; "" is the user's own code
    flame: tuple[FlameNode, ...]
    doing: tuple[Doing, ...] = ()  # what its threads did, where that is known


@dataclass(frozen=True)
class Code:
    """Which functions the time of a loader goes to, from bursts of stack samples. `reason`: why
    there are none.

    `stages` are "index" (main, drawing indices), "fetch", "collate", "pack", "pin", "wait" (main,
    inside `next()`, else) and "compute" (main, outside it).
    """

    bursts: int
    samples: int
    seconds: float
    rate_hz: Measured
    stages: Mapping[str, CodeStage]
    reason: str | None = None


@dataclass(frozen=True)
class FileKind:
    """Files of one suffix that were opened: how many opens, and the sizes of those whose size is
    known."""

    suffix: str  # lower case with its dot, "" for none
    opens: int
    mean_bytes: Measured
    max_bytes: Counted


@dataclass(frozen=True)
class Mount:
    """A file system that was read from. `kind`: "local", "overlay", "network", "fuse", "memory" or
    "other"."""

    path: str
    type: str  # as the kernel names it: ext4, overlay, nfs4, lustre, fuse.sshfs, tmpfs
    kind: str
    opens: int


@dataclass(frozen=True)
class Container:
    """One file that holds many samples. `kind`: lmdb, hdf5, parquet, arrow, tar, zip, npz, npy,
    memmap, sqlite."""

    kind: str
    path: str
    bytes: Counted


@dataclass(frozen=True)
class EpochReads:
    """What one epoch read, for each of its samples. The first is cold, later ones may come from the
    page cache."""

    epoch: int
    samples: int
    read_bytes: Measured  # by system calls
    disk_bytes: Measured  # of it, from the storage
    major_faults: Measured  # pages of memory maps that had to be read


@dataclass(frozen=True)
class StorageSummary:
    """What fetching reads, from the batches seen in detail. None: not measured, see `reasons`.

    `reading_share`, `decoding_share` and `other_share` divide fetch and add up to 1: waiting for
    files and copying their bytes, computing, and the rest (waiting for a core, locks).
    """

    samples: int  # looked at
    opens_per_sample: Measured
    reopened_share: Measured  # of the opens, those of a path the same process had opened before
    read_bytes_per_sample: Measured
    disk_bytes_per_sample: Measured
    read_calls_per_sample: Measured
    wait_us_per_open: Measured  # waiting for I/O, an upper bound of the latency of one file
    directories: Counted
    kinds: tuple[FileKind, ...]
    mounts: tuple[Mount, ...]
    containers: tuple[Container, ...]
    epochs: tuple[EpochReads, ...]
    dataset_bytes: Measured  # estimated size of everything the data set reads
    memory_bytes: Counted  # that the page cache may really use (the container's limit counted)
    reading_share: Measured
    decoding_share: Measured
    other_share: Measured
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LoaderReport:
    """One loader of one process; with `ranks`, of a job: all else is then of the rank named here.

    `headroom` is the end-to-end speed-up if loading were free, None if unknown.
    """

    name: str
    index: int
    pid: int
    rank: Counted
    kind: Literal["dataloader", "iterable"]
    config: Scalars
    batches: int
    samples: Counted
    epochs: int
    folded_batches: int  # of `batches`, older ones on which no figure rests
    wall_s: Measured
    batches_per_s: Measured
    samples_per_s: Measured
    bytes_per_batch: Measured
    verdict: Verdict
    basis: Basis
    headroom: Measured
    stages: Mapping[str, Stage]
    waiting: Waiting | None
    recommendations: tuple[Recommendation, ...] = ()
    rejected: tuple[Recommendation, ...] = ()
    notes: tuple[str, ...] = ()
    unmeasured: Mapping[str, str] = field(default_factory=dict)  # rule → what it would need to know
    code: Code | None = None  # None in reports written before stacks were recorded
    storage: StorageSummary | None = None
    ranks: Ranks | None = None  # None where one rank alone had it, or none
    plan: Plan | None = None  # None: nothing is recommended, or the report is older than plans
    tuning: Tuning | None = None  # None where its settings were not tried
    findings: tuple[Finding, ...] = ()  # what the waiting is made of, the largest first
    made_at: str | None = None  # "data.py:41": the user's own call that led to it

    @property
    def lost_share(self) -> float:
        """The part of the loop's time that free loading would save; 1 if nothing else is left."""
        return 1 - 1 / max(1.0, self.headroom) if self.headroom is not None else 1.0

    @property
    def lost_s(self) -> float:
        """Seconds that loading cost this loop."""
        return (self.wall_s or 0.0) * self.lost_share


@dataclass(frozen=True)
class GpuSummary:
    """One GPU over the run. Utilisation says how often any kernel ran, not how well the device was
    used."""

    index: int
    name: str | None
    util_mean_share: Measured
    mem_peak_bytes: Counted
    mem_total_bytes: Counted
    power_mean_w: Measured


@dataclass(frozen=True)
class SystemSummary:
    """The host while the run was recorded. None where not measured, with the reason in
    `reasons`."""

    host: str | None
    samples: int
    seconds: Measured
    cores_logical: Counted
    effective_cpus: Measured  # per rank: CPUs of the host's ranks (affinity, quota) / ranks
    cpu_busy_mean_share: Measured  # 1.0 = all cores
    cpu_busy_max_share: Measured
    cpu_iowait_mean_share: Measured
    throttled_share: Measured  # of the run, the time the container's CPU quota held it back
    mem_total_bytes: Counted
    mem_available_min_bytes: Counted
    cgroup_mem_limit_bytes: Counted
    cgroup_mem_peak_bytes: Counted
    shm_total_bytes: Counted
    shm_used_peak_bytes: Counted
    disk_read_bytes_s: Measured
    net_recv_bytes_s: Measured
    main_cpu_cores: Measured
    workers: int
    worker_cpu_mean_cores: Measured
    read_disk_bytes: Counted
    read_all_bytes: Counted
    gpus: tuple[GpuSummary, ...]
    reasons: Mapping[str, str]
    cpu_stolen_mean_share: Measured = None  # steal of proc(5): taken by the hypervisor
    others_cores: Measured = None  # kept busy by programs that are not of this run

    @property
    def crowded_by_others(self) -> bool:
        """Whether other programs took so much that times are inflated."""
        cores, others = self.cores_logical or 1, self.others_cores or 0.0
        return others >= OTHERS_INFLATE * cores and others >= LEAST_OTHERS


@dataclass(frozen=True)
class Overhead:
    """What recording cost, as Loaderscope measured it on itself."""

    per_batch_us: Measured
    share_of_step: Measured
    sampler_cpu_share: Measured  # of one core
    sampler_rss_bytes: Counted
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """What a run means. `schema` is the version of this format."""

    schema: int
    run: RunInfo
    loaders: tuple[LoaderReport, ...]
    system: SystemSummary
    overhead: Overhead
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # what this torch does not let us measure: read it first

    @property
    def costliest(self) -> tuple[LoaderReport, ...]:
        """The loaders, the one whose loading costs most first."""
        return tuple(sorted(self.loaders, key=lambda each: -each.lost_s))

    @property
    def plan(self) -> Plan | None:
        """What to do first: the plan of the loader that costs most, of those that have one."""
        return next((each.plan for each in self.costliest if each.plan is not None), None)

    def to_json(self, indent: int | None = 2) -> str:
        """The report as JSON text; `Report.from_json` gives an equal report back."""
        return dump(self, indent)

    def __str__(self) -> str:
        # Renderers lie above this room: found by name when they are needed.
        return str(import_module("...reports.text.text", __package__).render_text(self))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return f"<pre>{escape(str(self))}</pre>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython shows."""
        printer.text(str(self))

    @classmethod
    def from_json(cls, text: str) -> Report:
        """The report in a JSON text. Raises UsageError for anything else, or for a newer schema."""
        return load(cls, text, SCHEMA)
