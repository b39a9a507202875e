"""How times are spread over batches, and which batches were slowest and why."""

from __future__ import annotations

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
Key = tuple[int, ...]
MAX_CAUSES = 2_000


@dataclass(frozen=True)
class Spread:
    """One stage's times (ns) over the newest batches, counted in logarithmic bins; `edges_ns` has
    one more value."""

    name: str
    count: int
    edges_ns: tuple[float, ...]
    counts: tuple[int, ...]
    p50_ns: float | None
    p95_ns: float | None
    p99_ns: float | None
    max_ns: float | None
    reason: str | None


@dataclass(frozen=True)
class Slow:
    """One slow batch: its number in the lane, when it was handed over (s since the process began
    recording)."""

    number: int
    epoch: int
    at_s: float
    wait_ns: int | None
    fetch_ns: int | None
    collate_ns: int | None
    compute_ns: int | None
    worker: int | None
    cause: str


@dataclass(frozen=True)
class Batches:
    """Of the newest batches: the spread of each stage, and the slowest by each."""

    spreads: tuple[Spread, ...]
    slowest: dict[str, tuple[Slow, ...]]
    rows: int


def batches(
    loader: LoaderRun,
    begin_ns: int,
    reasons: dict[str, str | None],
    causes: dict[Key, str] | None = None,
) -> Batches:
    """`reasons` says why a stage has no figures; `causes` keeps causes already found for the next
    time."""
    causes = {} if causes is None else causes
    if len(causes) > MAX_CAUSES:
        causes.clear()
    columns = {name: loader.batches[f"{name}_ns"] for name in STAGES}
    spreads = tuple(_spread(name, values, reasons.get(name)) for name, values in columns.items())
    first = first_of_epoch(loader.batches["epoch"])
    picked = {name: _largest(values) for name, values in columns.items()}
    described = {
        row: _describe(loader, row, bool(first[row]), begin_ns, causes)
        for rows in picked.values()
        for row in rows
    }
    return Batches(
        spreads,
        {name: tuple(described[row] for row in rows) for name, rows in picked.items()},
        loader.batches.rows,
    )


def _spread(name: str, values: npt.NDArray[np.int64], reason: str | None) -> Spread:
    values = values[values >= 0]
    if not len(values):
        return Spread(name, 0, (), (), None, None, None, None, reason or "not measured")
    p50, p95, p99 = (float(value) for value in np.percentile(values, (50, 95, 99)))
    low, high = max(1.0, float(values.min())), max(2.0, float(values.max()))
    first = int(np.floor(np.log10(low) * BINS_A_DECADE))
    last = max(int(np.ceil(np.log10(high) * BINS_A_DECADE)), first + 1)
    missing = max(
        0, LEAST_BINS - (last - first)
    )  # equal times are one column in the middle, not a wall
    first, last = first - missing // 2, last + (missing + 1) // 2
    edges = 10.0 ** (np.arange(first, last + 1) / BINS_A_DECADE)
    where = np.floor(np.log10(np.maximum(values, 1)) * BINS_A_DECADE).astype(np.int64) - first
    counts = np.bincount(where.clip(0, len(edges) - 2), minlength=len(edges) - 1)
    return Spread(
        name, len(values), tuple(edges.tolist()), tuple(counts.tolist()), p50, p95, p99, high, None
    )


def _largest(values: npt.NDArray[np.int64]) -> list[int]:
    """Rows of the largest values, largest first."""
    if not len(values) or values.max() < 0:
        return []
    few = min(SLOWEST, len(values))
    rows = np.argpartition(values, len(values) - few)[-few:]
    return [int(row) for row in rows[np.argsort(-values[rows], kind="stable")] if values[row] >= 0]


def _describe(
    loader: LoaderRun, row: int, first: bool, begin_ns: int, causes: dict[Key, str]
) -> Slow:
    b = loader.batches
    key = tuple(int(b[name][row]) for name in _IDENTITY)
    if key not in causes:
        causes[key] = _cause(loader, row, first)

    def value(name: str) -> int | None:
        found = int(b[name][row])
        return found if found >= 0 else None

    return Slow(
        number=int(b["seq"][row]),
        epoch=int(b["epoch"][row]),
        at_s=max(0.0, (int(b["t_ns"][row]) + max(0, int(b["wait_ns"][row])) - begin_ns) / 1e9),
        wait_ns=value("wait_ns"),
        fetch_ns=value("fetch_ns"),
        collate_ns=value("collate_ns"),
        compute_ns=value("compute_ns"),
        worker=value("worker"),
        cause=causes[key],
    )


def _cause(loader: LoaderRun, row: int, first: bool) -> str:
    """The largest part of this batch's wait."""
    one = Columns({name: loader.batches[name][row : row + 1] for name in loader.batches}, 1)
    found = waiting(replace(loader, batches=one, folded=Compacted()), np.array([first]))
    if found is None or found.total_s <= 0:
        return "–"
    return max(found.causes.items(), key=lambda item: item[1].seconds)[0]
