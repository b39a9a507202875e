"""The totals that a rank of a large job writes when it ends. A report of a thousand ranks reads
this small file of each, and the lanes of a few."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from ..base.atomic_write import write_atomically
from ..base.errors import RunUnreadable
from ..base.metadata import Scalar
from ..base.tolerant import Count, Text, as_json, read_as
from .lanes.compacted import Compacted, Totals

if TYPE_CHECKING:
    from .lanes.columns import Columns

SUMMARY = "summary.json"
# With fewer ranks all lanes are read anyway; with so many, each has little room, and its lanes are
# read in no time.
LEAST_RANKS = 8
# What tells one loader of a process from another, and how many make its batches.
FACTS = ("dataset", "phase", "place", "framework", "num_workers")
# What ranks are compared by; in the order of the pipeline.
COLUMNS = (
    *("index_ns", "fetch_ns", "collate_ns", "pack_ns", "unpack_ns", "pin_ns"),
    *("wait_ns", "stall_ns", "compute_ns", "samples"),
)


class LoaderSummary(Struct, frozen=True):
    """One loader in totals. `columns` are those of the `steady` batches, that is without the first
    of each epoch; of batches of which only totals are kept, those of all."""

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


class _Described(Struct, frozen=True):
    """What is taken from `loader<n>.json`."""

    name: Text | None = None
    kind: Literal["dataloader", "iterable"] = "dataloader"
    config: Mapping[str, Scalar] = {}


def write_summary(directory: Path) -> None:
    """Sum up the loaders of a process that has recorded into this folder. Raises OSError."""
    from .lanes.columns import read_batches

    found = (re.fullmatch(r"loader(\d{1,9})\.json", path.name) for path in directory.iterdir())
    loaders = []
    for index in sorted(int(match[1]) for match in found if match):
        try:
            facts = read_as(_Described, directory / f"loader{index}.json")
        except RunUnreadable:
            facts = _Described()
        batches, folded, _ = read_batches(directory, index)
        name = facts.name or f"loader {index}"
        loaders.append(summed_up(index, name, facts.kind, facts.config, batches, folded))
    text = json.dumps(as_json(SummaryFile(1, tuple(loaders))))
    write_atomically(directory / SUMMARY, text)


def summed_up(
    index: int,
    name: str,
    kind: str,
    config: Mapping[str, Scalar],
    batches: Columns,
    folded: Compacted,
) -> LoaderSummary:
    """The totals of these batches, and those of older ones."""
    import numpy as np

    steady = np.ones(batches.rows, dtype=np.bool_)
    if batches.rows:
        steady[np.unique(batches["epoch"], return_index=True)[1]] = False
    columns = {}
    for column in COLUMNS:
        values, totals = batches[column], Totals()
        if len(values) and values.strides[0]:  # else one value for all rows: not measured
            totals.add(values[steady])
        if column in folded.columns:
            totals.merge(folded.columns[column])
        if totals.count:
            columns[column] = totals
    return LoaderSummary(
        *(index, name, kind, {fact: config.get(fact) for fact in FACTS}),
        *(batches.rows + folded.records, int(np.count_nonzero(steady)) + folded.records, columns),
    )
