"""How times are spread over batches, and which batches were slowest and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...advisors.stage_model.verdict import first_of_epoch
from ...advisors.stage_model.waiting import waiting
from ...profiler.store.lanes.columns import Columns
from ...profiler.store.lanes.compacted import Compacted
from ...profiler.store.run.run import LoaderRun

STAGES = ("wait", "fetch", "collate", "compute")
SLOWEST = 15
# Steps of a factor of 10: fine enough for 40 columns over three decades.
BINS_A_DECADE = 12
LEAST_BINS = 9

# What tells one batch, as it was measured, from any other: its cause need not be found twice.
_IDENTITY = ("seq", "t_ns", "wait_ns", "worker_pid")
Causes = dict[tuple[int, ...], str]
MAX_CAUSES = 2_000


@dataclass(frozen=True)
class Spread:
    """One stage's times over the newest batches, counted in logarithmic bins; `edges_ns` has one
    more value. Nothing where it was not measured."""

    edges_ns: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()
    max_ns: float | None = None


@dataclass(frozen=True)
class Slow:
    """One slow batch: its number in the lane, when it was handed over (s since the process began
    recording), and the time of each stage, None where it was not measured."""

    number: int
    epoch: int
    at_s: float
    times_ns: Mapping[str, int | None]
    worker: int | None
    cause: str


@dataclass(frozen=True)
class Batches:
    """Of the newest batches, by stage: how its times are spread, and the slowest."""

    spreads: Mapping[str, Spread]
    slowest: Mapping[str, tuple[Slow, ...]]


def batches(loader: LoaderRun, begin_ns: int, causes: Causes) -> Batches:
    """`causes` keeps the causes found for the next time."""
    if len(causes) > MAX_CAUSES:
        causes.clear()
    columns = {name: loader.batches[f"{name}_ns"] for name in STAGES}
    first = first_of_epoch(loader.batches["epoch"])
    picked = {name: _largest(values) for name, values in columns.items()}
    described = {
        row: _describe(loader, row, bool(first[row]), begin_ns, causes)
        for row in {row for rows in picked.values() for row in rows}
    }
    return Batches(
        {name: _spread(values[values >= 0]) for name, values in columns.items()},
        {name: tuple(described[row] for row in rows) for name, rows in picked.items()},
    )


def _spread(values: npt.NDArray[np.int64]) -> Spread:
    if not len(values):
        return Spread()
    bins = np.floor(np.log10(values.clip(1)) * BINS_A_DECADE).astype(np.int64)
    first, last = int(bins.min()), int(bins.max()) + 1
    # Equal times are one column in the middle, not a wall.
    missing = max(0, LEAST_BINS - (last - first))
    first, last = first - missing // 2, last + (missing + 1) // 2
    edges = 10.0 ** (np.arange(first, last + 1) / BINS_A_DECADE)
    counts = np.bincount(bins - first, minlength=last - first)
    return Spread(tuple(edges.tolist()), tuple(counts.tolist()), float(values.max()))


def _largest(values: npt.NDArray[np.int64]) -> list[int]:
    """Rows of the largest values, largest first."""
    few = min(SLOWEST, len(values))
    rows = np.argpartition(values, len(values) - few)[-few:] if few else values
    return [int(row) for row in rows[np.argsort(-values[rows], kind="stable")] if values[row] >= 0]


def _describe(loader: LoaderRun, row: int, first: bool, begin_ns: int, causes: Causes) -> Slow:
    one = Columns({name: values[row : row + 1] for name, values in loader.batches.items()}, 1)
    batch = {name: values[0].item() for name, values in one.items()}
    key = tuple(batch[name] for name in _IDENTITY)
    if key not in causes:
        causes[key] = _cause(replace(loader, batches=one, folded=Compacted()), first)
    known = {name: value if value >= 0 else None for name, value in batch.items()}
    return Slow(
        number=batch["seq"],
        epoch=batch["epoch"],
        at_s=max(0.0, (batch["t_ns"] + max(0, batch["wait_ns"]) - begin_ns) / 1e9),
        times_ns={name: known[f"{name}_ns"] for name in STAGES},
        worker=known["worker"],
        cause=causes[key],
    )


def _cause(one: LoaderRun, first: bool) -> str:
    """The largest part of this batch's wait."""
    found = waiting(one, np.array([first]))
    if found is None or found.total_s <= 0:
        return "–"
    return max(found.causes, key=lambda name: found.causes[name].seconds)
