"""What a rank does not record, counted from all processes: the ranks on its host, and its place
among them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from .run import ProcessRun


def with_ranks_counted(processes: Iterable[ProcessRun]) -> tuple[ProcessRun, ...]:
    """The processes, with what a launcher left unset: their number of ranks on the host, and their
    local rank where the whole job is on one host."""
    known = tuple(processes)
    ranks: dict[object, set[int]] = defaultdict(set)
    for process in known:
        if process.rank is not None:
            ranks[process.host, process.boot_id].add(process.rank)
    return tuple(
        each
        if each.rank is None
        else _counted(each, each.rank, len(ranks[each.host, each.boot_id]))
        for each in known
    )


def _counted(process: ProcessRun, rank: int, here: int) -> ProcessRun:
    size, local = process.local_world_size, process.local_rank
    alone = local is None and here == process.world_size
    return replace(
        process,
        local_world_size=here if size is None else size,
        local_rank=rank if alone else local,
    )
