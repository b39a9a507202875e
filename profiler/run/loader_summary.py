"""One loader of one process in totals: what is asked of every rank, where only a few are looked at in detail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..base.metadata import Scalar
from ..lanes.compacted import Totals
from .run import LoaderRun

# What ranks are compared by; in the order of the pipeline.
COLUMNS = (
    *("index_ns", "fetch_ns", "collate_ns", "pack_ns", "unpack_ns", "pin_ns"),
    *("wait_ns", "stall_ns", "compute_ns", "samples"),
)
# What tells one loader of a process from another, and how many make its batches.
FACTS = ("dataset", "phase", "place", "framework", "num_workers")


@dataclass(frozen=True)
class LoaderSummary:
    """`columns` holds the totals of the steady batches, that is without the first of each epoch; of batches of which
    only totals are kept, those of all."""

    index: int
    name: str
    kind: str
    facts: Mapping[str, Scalar]
    batches: int
    steady: int
    columns: Mapping[str, Totals]

    def mean(self, column: str) -> float | None:
        """None where it was not measured."""
        found = self.columns.get(column)
        return found.total / found.count if found is not None and found.count else None

    @property
    def identity(self) -> tuple[Scalar, ...]:
        """What is the same of this loader in every rank."""
        return (self.name, self.kind, *(self.facts.get(name) for name in FACTS[:-1]))


def summary_of(loader: LoaderRun) -> LoaderSummary:
    """The totals of what was read of this loader."""
    batches = loader.batches
    epoch = batches["epoch"]
    steady = np.ones(batches.rows, dtype=np.bool_)
    if batches.rows:
        steady[np.unique(epoch, return_index=True)[1]] = False
    columns = {}
    for name in COLUMNS:
        values = batches[name]
        totals = Totals()
        if len(values) and values.strides[0]:  # else one value for all rows: not measured
            totals.add(values[steady])
        if name in loader.folded.columns:
            totals.merge(loader.folded.columns[name])
        if totals.count:
            columns[name] = totals
    facts = {name: loader.config.get(name) for name in FACTS}
    count = int(np.count_nonzero(steady)) + loader.folded.records
    return LoaderSummary(loader.index, loader.name, loader.kind, facts, loader.count, count, columns)
