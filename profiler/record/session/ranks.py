"""Finds which rank of a job this process is.

The best source is torch.distributed, then the launcher's environment. The launcher's local rank and
ranks on this host only count if it speaks of the same job: SLURM does not know the ranks that
`mp.spawn` makes inside one of its tasks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...guard.static_access import loaded

GROUP = "torch.distributed"


@dataclass(frozen=True)
class Ranks:
    """None means unknown. `rank_source` says where the rank is known from."""

    rank: int | None = None
    world_size: int | None = None
    local_rank: int | None = None
    local_world_size: int | None = None
    rank_source: str | None = None


# By launcher: the variables of rank, world, local rank and ranks on this host.
_LAUNCHERS = {
    "environment": ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    "SLURM": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", None),
    "Open MPI": (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    "MPI": ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
}


def ranks(
    environ: Mapping[str, str],
    group: tuple[int, int] | None = None,
) -> Ranks:
    """The known ranks. `group` is (rank, world) of torch.distributed."""
    launched = _launched(environ)
    if group is None:
        return launched
    rank, world = group
    same_job = launched.world_size in (None, world) and launched.rank in (None, rank)
    base = launched if same_job else Ranks()
    return replace(base, rank=rank, world_size=world, rank_source=GROUP)


def group_of_process() -> tuple[int, int] | None:
    """(rank, world) in torch.distributed's default group, None if there is none. Imports
    nothing."""
    distributed = loaded("torch.distributed")
    if distributed.get("is_initialized", bool)() is not True:
        return None
    return distributed["get_rank"](), distributed["get_world_size"]()


def _launched(environ: Mapping[str, str]) -> Ranks:
    def number(name: str | None) -> int | None:
        text = environ.get(name, "") if name is not None else ""
        return int(text) if re.fullmatch(r"\d{1,9}", text) else None

    for source, names in _LAUNCHERS.items():
        rank, world, local, host = (number(name) for name in names)
        if source == "SLURM":
            if world == 1:  # a step of one task, which may itself start the ranks
                continue
            host = _tasks_here(environ, number("SLURM_NODEID"))
        if rank is not None and (world is not None or source == "environment"):
            return Ranks(rank, world, local, host, source)
        if source == "environment" and (local is not None or host is not None):
            return Ranks(None, world, local, host)
    return Ranks()


def _tasks_here(environ: Mapping[str, str], node: int | None) -> int | None:
    """For "4(x2),3", nodes 0 and 1 have four tasks, node 2 has three."""
    text = environ.get("SLURM_STEP_TASKS_PER_NODE", "")
    first = 0
    for tasks, _, times in re.findall(r"(\d{1,9})(\(x(\d{1,9})\))?", text):
        first += int(times or 1)
        if node is not None and node < first:
            return int(tasks)
    return None
