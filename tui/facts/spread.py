"""How times are spread over batches, and which batches were slowest and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ...advisors.stage_model.measured import measured
from ...advisors.stage_model.verdict import first_of_epoch
from ...advisors.stage_model.waiting import waiting
from ...profiler.store.lanes.columns import Columns
from ...profiler.store.lanes.compacted import Compacted
from ...profiler.store.run.run import LoaderRun

STAGES = ("wait", "fetch", "collate", "compute")
SLOWEST = 15
# Steps of a factor of 10: fine enough for 40 columns over three decades.
BINS_A_DECADE, LEAST_DECADES = 12, 0.75


@dataclass(frozen=True)
class Spread:
    """One stage's times over the newest batches, counted in equal steps of a factor from low to
    high."""

    low_ns: float
    high_ns: float
    counts: tuple[int, ...]
    max_ns: float


@dataclass(frozen=True)
class Slow:
    """One slow batch: its number in the lane, when it was handed over (s since the process began
    recording), the time of each stage, None where it was not measured, and the largest part of its
    wait."""

    number: int
    epoch: int
    at_s: float
    times_ns: Mapping[str, int | None]
    worker: int | None
    cause: str


def spread(loader: LoaderRun, stage: str) -> Spread | None:
    """Of the newest batches; None where none was measured."""
    values = measured(loader.batches[f"{stage}_ns"]).clip(1)
    if not len(values):
        return None
    low, high = float(values.min()), float(values.max())
    decades = max(LEAST_DECADES, np.log10(high / low))
    # Equal times are one column in the middle, not a wall.
    margin = 10 ** ((decades - np.log10(high / low)) / 2)
    edges = np.geomspace(low / margin, high * margin, round(decades * BINS_A_DECADE) + 1)
    counts, _ = np.histogram(values, edges)
    return Spread(float(edges[0]), float(edges[-1]), tuple(counts.tolist()), high)


def slowest(loader: LoaderRun, stage: str, begin_ns: int) -> list[Slow]:
    """Of the newest batches the slowest by this stage, the slowest first."""
    batches, values = loader.batches, loader.batches[f"{stage}_ns"]
    first = first_of_epoch(batches["epoch"])
    few = min(SLOWEST, len(values))
    rows = np.argpartition(values, len(values) - few)[-few:] if few else values
    rows = rows[np.argsort(-values[rows], kind="stable")]
    return [_slow(loader, int(row), first[row], begin_ns) for row in rows if values[row] >= 0]


def _slow(loader: LoaderRun, row: int, first: np.bool_, begin_ns: int) -> Slow:
    one = Columns({name: values[row : row + 1] for name, values in loader.batches.items()}, 1)
    batch = {name: values[0].item() for name, values in one.items()}
    known = {name: value if value >= 0 else None for name, value in batch.items()}
    waited = waiting(replace(loader, batches=one, folded=Compacted()), np.array([first]))
    causes = waited.causes if waited is not None and waited.total_s > 0 else {}
    return Slow(
        number=batch["seq"],
        epoch=batch["epoch"],
        at_s=max(0.0, (batch["t_ns"] + max(0, batch["wait_ns"]) - begin_ns) / 1e9),
        times_ns={name: known[f"{name}_ns"] for name in STAGES},
        worker=known["worker"],
        cause=max(causes, key=lambda name: causes[name].seconds, default="–"),
    )
