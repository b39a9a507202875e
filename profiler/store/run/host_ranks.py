"""What no rank says of itself, counted from all that recorded: how many are on its host, and which
of them it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from .run import ProcessRun

Host = tuple[str | None, str | None]


def with_ranks_counted(processes: Iterable[ProcessRun]) -> tuple[ProcessRun, ...]:
    """The processes, where a launcher left it unsaid with their number of ranks on the host, and
    with their local rank where the whole job is on one host."""
    known = tuple(processes)
    ranks: dict[Host, set[int]] = defaultdict(set)
    for process in known:
        if process.rank is not None:
            ranks[_host(process)].add(process.rank)
    return tuple(_counted(process, len(ranks[_host(process)])) for process in known)


def _counted(process: ProcessRun, here: int) -> ProcessRun:
    if process.rank is None or not here:
        return process
    alone = process.world_size is not None and here == process.world_size
    return replace(
        process,
        local_world_size=process.local_world_size if process.local_world_size is not None else here,
        local_rank=process.rank if process.local_rank is None and alone else process.local_rank,
    )


def _host(process: ProcessRun) -> Host:
    return process.host, process.boot_id
