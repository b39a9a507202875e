"""A loader in totals. A report of a thousand ranks keeps this of each, and the batches of a few."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...base.metadata import Scalar, Scalars

if TYPE_CHECKING:
    from .run import LoaderRun

# What tells one loader of a process from another, and how many make its batches.
FACTS = ("dataset", "phase", "place", "framework", "num_workers")
# What ranks are compared by; in the order of the pipeline.
COLUMNS = (
    "index_ns",
    "fetch_ns",
    "collate_ns",
    "pack_ns",
    "unpack_ns",
    "pin_ns",
    "wait_ns",
    "stall_ns",
    "compute_ns",
)


@dataclass(frozen=True)
class Usual:
    """The measured values of a column; `error` is the standard error of the mean."""

    mean: float
    median: float
    error: float


@dataclass(frozen=True)
class LoaderSummary:
    """One loader in totals. `columns` are those of the `steady` batches, without the first of each
    epoch."""

    index: int
    name: str
    kind: str
    facts: Scalars
    batches: int
    steady: int
    columns: Mapping[str, Usual]

    @property
    def identity(self) -> tuple[Scalar, ...]:
        """What is the same of this loader in every rank."""
        return (self.name, self.kind, *(self.facts.get(name) for name in FACTS[:-1]))


def summary_of(loader: LoaderRun) -> LoaderSummary:
    """The totals of what was read of this loader."""
    batches = loader.batches
    steady = np.ones(batches.rows, dtype=np.bool_)
    steady[np.unique(batches["epoch"], return_index=True)[1]] = False
    columns = {}
    for column in COLUMNS:
        values = batches[column][steady]
        values = values[values >= 0]
        if len(values):
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
            columns[column] = Usual(float(values.mean()), float(np.median(values)), float(error))
    return LoaderSummary(
        loader.index,
        loader.name,
        loader.kind,
        {name: loader.config.get(name) for name in FACTS},
        loader.count,
        int(np.count_nonzero(steady)),
        columns,
    )
