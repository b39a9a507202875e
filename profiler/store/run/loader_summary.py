"""A loader in totals, as in the `summary.json` that a rank of a large job writes when it ends. A
report of a thousand ranks reads this small file of each, and the lanes of a few."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from msgspec import Struct, ValidationError, convert

from ...base.errors import RunUnreadable
from ...base.metadata import Scalar, read_json
from ...base.tolerant import Count, Text
from ..lanes.compacted import Totals

if TYPE_CHECKING:
    from .run import LoaderRun

SUMMARY = "summary.json"
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
    "samples",
)


class LoaderSummary(Struct, frozen=True):
    """One loader in totals. `columns` are those of the `steady` batches, without the first of each
    epoch; of batches of which only totals are left, those of all."""

    index: Count
    name: Text
    kind: Text
    facts: Mapping[str, Scalar]
    batches: Count
    steady: Count
    columns: Mapping[str, Totals]

    def __post_init__(self) -> None:
        """Raises ValueError for totals of nothing."""
        if not all(totals.count for totals in self.columns.values()):
            raise ValueError("no totals")

    def mean(self, column: str) -> float | None:
        """None where it was not measured."""
        found = self.columns.get(column)
        return found.total / found.count if found is not None else None

    @property
    def identity(self) -> tuple[Scalar, ...]:
        """What is the same of this loader in every rank."""
        return (self.name, self.kind, *(self.facts.get(name) for name in FACTS[:-1]))


class SummaryFile(Struct, frozen=True):
    """`summary.json`."""

    format: Literal[1]
    loaders: tuple[LoaderSummary, ...]


def summary_of(loader: LoaderRun) -> LoaderSummary:
    """The totals of what was read of this loader, older batches included."""
    batches, folded = loader.batches, loader.folded
    steady = np.ones(batches.rows, dtype=np.bool_)
    steady[np.unique(batches["epoch"], return_index=True)[1]] = False
    columns = {}
    for column in COLUMNS:
        totals = Totals()
        if batches.measured(column):
            totals.add(batches[column][steady])
        if column in folded.columns:
            totals.merge(folded.columns[column])
        if totals.count:
            columns[column] = totals
    return LoaderSummary(
        loader.index,
        loader.name,
        loader.kind,
        {name: loader.config.get(name) for name in FACTS},
        loader.count,
        int(np.count_nonzero(steady)) + folded.records,
        columns,
    )


def read_summaries(directory: Path) -> tuple[LoaderSummary, ...] | None:
    """What the process of this folder left when it ended; None where it did not, or where that is
    damaged: its lanes say the same."""
    try:
        return convert(read_json(directory / SUMMARY), SummaryFile).loaders
    except (RunUnreadable, ValidationError):
        return None
