"""Tar shards, read from end to end: for network file systems, where a stream is fast and a file is
slow."""

from __future__ import annotations

from typing import Any

from ...case.case import Case
from ...case.code_text import Source
from ..loader_code import DROP, loader_code
from ..loader_form import form_of
from ..template import code_from
from .place import copied, file_lists, target_code

# Each reader (worker of a rank) should have several shards, so that none is left without work at
# the end.
SHARDS_A_READER = 4
LEAST_SHARDS = 4


def shard_count(case: Case) -> int:
    """Shards to write: SHARDS_A_READER × workers × ranks."""
    ranks = case.process.world_size or 1
    return max(LEAST_SHARDS, SHARDS_A_READER * max(1, case.num_workers) * ranks)


def shards_code(case: Case) -> str | None:
    """Conversion, reading and a loader; None where files cannot stand in for the data set's
    paths."""
    lists, form = file_lists(case), form_of(case)
    # Shards hold every sample, and each rank and worker reads its own: other orders and choices
    # would be lost.
    dealt = str(case.config.get("sampler")).endswith("DistributedSampler")
    if (
        len(lists) != 1
        or not lists[0].stands_in
        or case.config.get("dataset_kind") != "map"
        or not (form.plain or dealt)
        or case.batch_size is None
    ):
        return None
    only = lists[0]
    current = only.code.replace("dataset", "packed", 1)
    shards = f"Shards(packed, {current}, target, buffer={1000 if form.shuffle else 0})"
    changes: dict[str, Any] = {"shuffle": DROP, "sampler": DROP, "batch_sampler": DROP}
    if form.batching != "batch_size":
        last = case.config.get("drop_last") is True
        changes |= {"batch_size": case.batch_size, "drop_last": last or DROP}
    lines = [
        *copied("packed", only.path),
        *target_code(case, "shards"),
        "if not target.exists():",
        f"    shard({only.paths}, target, {shard_count(case)})  # once, by one process",
        f"{current} = Current({only.code})",
        *only.opens_packed(),
        "",
        loader_code(case, dataset=Source(shards), **changes),
        "",
    ]
    return code_from("packed", then="\n".join(lines))
