"""The `Report`: what a run means, as frozen values with their units in their names. JSON in and out.

A figure that was not measured is None, and the `reason` or `reasons` beside it says why. Shares are fractions of 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from .codec import dump, load

SCHEMA = 1

Scalar = str | int | float | bool | None
Verdict = Literal["input-bound", "compute-bound", "balanced", "too-short"]
Confidence = Literal["high", "medium", "low"]


@dataclass(frozen=True)
class RunInfo:
    """Which run, where and when. `wall_s` is from the first `iter()` to the last thing recorded."""

    id: str
    path: str
    state: Literal["live", "finished", "crashed", "unknown"]
    created_unix_ns: int | None
    wall_s: float | None
    argv: tuple[str, ...]
    host: str | None
    platform: str | None
    python: str | None
    torch: str | None
    loaderscope: str | None
    processes: int
    world_size: int | None
    devices: tuple[str, ...]


@dataclass(frozen=True)
class Stage:
    """One stage's times a batch, in microseconds.

    `share` is the stage's total over the total of all steps. Stages that run in parallel (fetch in four workers) may
    exceed 1. `count` is the number of batches it was measured on: 0 means not measured, and `reason` says why; a
    reason beside figures says how they are to be read. Percentiles over folded detail are within 4.5 %.
    """

    count: int
    mean_us: float | None
    p50_us: float | None
    p95_us: float | None
    p99_us: float | None
    share: float | None
    total_s: float | None
    reason: str | None = None


@dataclass(frozen=True)
class Cause:
    """A part of the waiting: seconds, and the share of all waiting."""

    seconds: float
    share: float


@dataclass(frozen=True)
class Waiting:
    """Where the time inside `next()` came from. The causes add up to `total_s`.

    `work` divides `workers-busy` (waiting for workers that were still making earlier batches) by what workers spend
    their time on, and adds the fetching and collating of the awaited batch itself: its values are shares of all
    waiting, to be read as "a worker was doing this while the loop waited".

    `fetch_idle_share` and `collate_idle_share` are 1 - CPU / wall; `fetch_core_wait_share` is the part of fetch's wall
    time in which it was ready to run and no core was free. What is left of the idle share is I/O, locks and the like.
    """

    batches: int
    total_s: float
    causes: Mapping[str, Cause]
    work: Mapping[str, float]
    fetch_idle_share: float | None  # of fetch's wall time, spent not computing: I/O, locks, other processes
    collate_idle_share: float | None
    fetch_core_wait_share: float | None = None


@dataclass(frozen=True)
class Basis:
    """What the verdict rests on.

    `stall_share` is the part of the steady steps that loading cost (the first batch of each epoch is left out), with
    the range in which the true share should lie nineteen times in twenty; `epoch_start_share` is the part of all time
    lost to epoch starts after the first.
    """

    sentence: str
    confidence: Confidence
    steady_batches: int
    stall_share: float | None
    stall_share_low: float | None
    stall_share_high: float | None
    epoch_start_share: float | None
    lost: Literal["stall", "wait"]


@dataclass(frozen=True)
class Range:
    """A factor on batches per second: the true value should lie in [low, high] four times in five."""

    low: float
    mid: float
    high: float


@dataclass(frozen=True)
class Change:
    """What to change: DataLoader arguments, and code to paste."""

    params: Mapping[str, Scalar]
    code: str


@dataclass(frozen=True)
class Recommendation:
    """One piece of advice with its evidence ("value unit") and its predicted effect.

    `kind` says whether it is about speed, or about training right ("correctness") or surviving ("safety"): the last two
    are made whatever the speed.
    """

    rule: str
    title: str
    why: str
    evidence: Mapping[str, str]
    predicted: Range
    measured: float | None
    change: Change
    caveat: str | None
    doc: str | None
    kind: Literal["speed", "correctness", "safety"] = "speed"


@dataclass(frozen=True)
class Capacity:
    """Batches a second a stage could sustain if it alone were the limit, None if unknown; `how` says on what terms."""

    batches_per_s: float | None
    how: str


@dataclass(frozen=True)
class LoaderReport:
    """One loader of one process. `headroom` is the end-to-end speed-up if loading were free, None if unknown."""

    name: str
    index: int
    pid: int
    rank: int | None
    kind: Literal["dataloader", "iterable"]
    config: Mapping[str, Scalar]
    batches: int
    samples: int | None
    epochs: int
    folded_batches: int  # of `batches`, those of which only totals are left
    wall_s: float | None
    batches_per_s: float | None
    samples_per_s: float | None
    bytes_per_batch: float | None
    verdict: Verdict
    basis: Basis
    headroom: float | None
    stages: Mapping[str, Stage]
    waiting: Waiting | None
    recommendations: tuple[Recommendation, ...] = ()
    rejected: tuple[Recommendation, ...] = ()
    notes: tuple[str, ...] = ()
    capacities: Mapping[str, Capacity] = field(default_factory=dict)
    limit: str | None = None  # the stage with the lowest capacity
    unmeasured: Mapping[str, str] = field(default_factory=dict)  # rule → what it would need to know


@dataclass(frozen=True)
class GpuSummary:
    """One GPU over the run. Utilisation says how often any kernel ran, not how well the device was used."""

    index: int
    name: str | None
    util_mean_share: float | None
    mem_peak_bytes: int | None
    mem_total_bytes: int | None
    power_mean_w: float | None
    pcie_rx_mean_bytes_s: float | None


@dataclass(frozen=True)
class ProcessSummary:
    """A training process or one worker over the run. CPU is in cores: 1.0 is one core fully used."""

    pid: int
    role: Literal["main", "worker"]
    worker: int | None
    cpu_mean_cores: float | None
    rss_peak_bytes: int | None
    uss_peak_bytes: int | None
    pss_peak_bytes: int | None
    threads_max: int | None
    fds_max: int | None
    major_faults: int | None
    read_disk_bytes: int | None
    read_all_bytes: int | None  # by system calls: what exceeds read_disk_bytes came from the page cache


@dataclass(frozen=True)
class SystemSummary:
    """The host while the run was recorded. None where not measured, with the reason in `reasons`."""

    host: str | None
    samples: int
    seconds: float | None
    cores_logical: int | None
    effective_cpus: float | None  # min(affinity, cgroup quota) / ranks on this host
    cpu_busy_mean_share: float | None  # 1.0 = all cores
    cpu_busy_max_share: float | None
    cpu_iowait_mean_share: float | None
    throttled_share: float | None  # of the run, the time the container's CPU quota held it back
    mem_total_bytes: int | None
    mem_available_min_bytes: int | None
    cgroup_mem_limit_bytes: int | None
    cgroup_mem_peak_bytes: int | None
    shm_total_bytes: int | None
    shm_used_peak_bytes: int | None
    disk_read_bytes_s: float | None
    disk_write_bytes_s: float | None
    net_recv_bytes_s: float | None
    main_cpu_cores: float | None
    workers: int
    worker_cpu_mean_cores: float | None
    read_disk_bytes: int | None
    read_all_bytes: int | None
    processes: tuple[ProcessSummary, ...]
    gpus: tuple[GpuSummary, ...]
    reasons: Mapping[str, str]


@dataclass(frozen=True)
class Overhead:
    """What recording cost, as Loaderscope measured it on itself."""

    per_batch_us: float | None
    share_of_step: float | None
    sampler_cpu_share: float | None  # of one core
    sampler_rss_bytes: int | None
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

    def to_json(self, indent: int | None = 2) -> str:
        """The report as JSON text; `Report.from_json` gives an equal report back."""
        return dump(self, indent)

    @classmethod
    def from_json(cls, text: str) -> Report:
        """The report in a JSON text. Raises UsageError for anything else, or for a newer schema."""
        return load(cls, text, SCHEMA)
