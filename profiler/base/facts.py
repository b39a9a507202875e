"""The facts of runs, processes and hosts: `run.json`, `process.json` and `host.json`.

The recording side writes these types, and readers get them back (see `tolerant`). None means
unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from .cpu_list import cpus_of
from .tolerant import Text

FORMAT = 1  # of the JSON files of a run directory
Texts = tuple[str, ...]
Affinity = int | Annotated[tuple[int, ...], Meta(min_length=1)] | None  # how many cores, or which


class Facts(Struct, frozen=True, kw_only=True):
    """The facts that all of them have."""

    format: int | None = None
    host: Text | None = None
    boot_id: Text | None = None
    clock_ns: int | None = None


class RunFacts(Facts, frozen=True, kw_only=True):
    """`run.json`."""

    id: Text | None = None
    created_unix_ns: int | None = None
    argv: Texts = ()
    python: Text | None = None
    platform: Text | None = None
    loaderscope: Text | None = None
    pid: int | None = None


class ProcessFacts(Facts, frozen=True, kw_only=True):
    """`process.json` while its process records."""

    pid: int | None = None
    create_time: float | None = None
    unix_ns: int | None = None
    argv: Texts = ()
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    local_world_size: int | None = None
    rank_source: Text | None = None  # who said the rank: "torch.distributed" or a launcher
    python: Text | None = None
    torch: Text | None = None
    start_method: Text | None = None
    affinity: Affinity = None
    cpus: str | None = None
    torch_threads: int | None = None
    fd_limit: int | None = None  # open files it may hold
    device: Text | None = None
    reasons: Mapping[str, str] = {}


class EndedProcess(ProcessFacts, frozen=True, kw_only=True):
    """`process.json`, with the facts that are added while it records and when it ends."""

    stacks: str = "on"  # whether bursts of stacks are taken by themselves: "on", "off" or "eager"
    ended_clock_ns: int | None = None
    ended_by: Text | None = None  # the type of the error that ended the program

    @property
    def cores(self) -> int | None:
        """How many cores it may run on."""
        return core_count(self.affinity)

    @property
    def core_numbers(self) -> frozenset[int]:
        """Their numbers, empty if unknown."""
        return cpus_of(self.cpus or "")


class GpuFacts(Struct, frozen=True):
    """One GPU as NVML describes it."""

    index: int = 0
    name: Text = "GPU"
    mem_total_bytes: int | None = None


class CgroupFacts(Struct, frozen=True, kw_only=True):
    """The limits that bind the sampled processes; `cpu_quota` in cores."""

    cpu_quota: float | None = None
    mem_limit_bytes: int | None = None


class HostFacts(Facts, frozen=True, kw_only=True):
    """`host.json`."""

    unix_ns: int | None = None
    cores_logical: int | None = None
    affinity: Affinity = None
    mem_total_bytes: int | None = None
    shm_total_bytes: int | None = None
    cgroup: CgroupFacts = CgroupFacts()
    gpus: tuple[GpuFacts, ...] = ()
    reasons: Mapping[str, str] = {}


def core_count(affinity: int | tuple[int, ...] | None) -> int | None:
    """The number of cores in an affinity, which is stored as a number or as a list."""
    return len(affinity) if isinstance(affinity, tuple) else affinity
