"""One loader of one process in totals: what is asked of every rank, where only a few are looked at
in detail."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...base.errors import RunUnreadable
from ...base.metadata import Scalar, clean, integer, read_json, scalars, text
from ..lanes.compacted import BINS, Totals
from ..lanes.steady_totals import COLUMNS, steady_totals
from ..rundir import FORMAT
from ..summary import FACTS, SUMMARY

if TYPE_CHECKING:
    from .run import LoaderRun


@dataclass(frozen=True)
class LoaderSummary:
    """`columns` holds the totals of the steady batches, as `steady_totals` has them."""

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
    steady, columns = steady_totals(loader.batches, loader.folded)
    facts = {name: loader.config.get(name) for name in FACTS}
    return LoaderSummary(
        loader.index, loader.name, loader.kind, facts, loader.count, steady, columns
    )


def read_summaries(directory: Path) -> tuple[LoaderSummary, ...] | None:
    """What the process of this folder has left when it ended; None where it has not, or where that
    is damaged: its lanes say the same."""
    try:
        data = read_json(directory / SUMMARY)
        if data.get("format") != FORMAT or not isinstance(data.get("loaders"), list):
            return None
        return tuple(_loader(each) for each in data["loaders"])
    except (RunUnreadable, KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def _loader(data: Mapping[str, Any]) -> LoaderSummary:
    """Raises what anything of another shape brings about."""
    index, batches, steady = (integer(data, name) for name in ("index", "batches", "steady"))
    if index is None or batches is None or steady is None or min(index, batches, steady) < 0:
        raise ValueError("no number of batches")
    columns = {name: _totals(*data["columns"][name]) for name in COLUMNS if name in data["columns"]}
    name, kind = text(data, "name"), text(data, "kind")
    return LoaderSummary(
        index,
        clean(name or f"loader {index}"),
        clean(kind or "dataloader"),
        scalars(data, "facts"),
        batches,
        steady,
        columns,
    )


def _totals(count: int, total: float, low: float, high: float, bins: list[list[int]]) -> Totals:
    held = {int(bin_): int(many) for bin_, many in bins}
    finite = (
        all(math.isfinite(value) for value in (total, low, high))
        and 0 <= low <= high
        and total >= 0
    )
    if (
        type(count) is not int
        or count <= 0
        or not finite
        or any(not 0 <= bin_ < BINS for bin_ in held)
    ):
        raise ValueError("no totals")
    return Totals(count, total, low, high, held)
