"""The fifth screen: how times are spread, and the slowest batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from textual.content import Content

from ...advisors.stage_model.measured import measured
from ...advisors.stage_model.verdict import first_of_epoch
from ...advisors.stage_model.waiting import waiting
from ...profiler.store.lanes.columns import Columns
from ...profiler.store.lanes.compacted import Compacted
from ...profiler.store.run.run import LoaderRun
from ...reports.words.glosses import CAUSES
from ...reports.words.units import UNKNOWN, count, duration, micros
from ..snapshot import LoaderView
from .marks import BAD, DIM, GOOD, MARK, SECOND, course, dim, line, lines, text
from .needs import needs_loader

STAGES = ("wait", "fetch", "collate", "compute")
_STYLES = (BAD, MARK, SECOND, GOOD)
SLOWEST = 15
# Steps of a factor of 10: fine enough for 40 columns over three decades.
BINS_A_DECADE, LEAST_DECADES = 12, 0.75

Ints = npt.NDArray[np.int64]


@needs_loader
def spread(v: LoaderView, width: int, height: int, number: int = 0) -> Content:
    """One stage's distribution on a logarithmic axis, with its percentiles."""
    stage = v.report.stages[STAGES[number]]
    values = measured(v.loader.batches[f"{STAGES[number]}_ns"]).clip(1)
    if not len(values):
        return dim(text(stage.reason or "not measured"))
    counts, edges = histogram(values)
    known = {"p50 ": micros(stage.p50_us), "  p95 ": micros(stage.p95_us)}
    known["  max "] = _time(values.max())
    if width >= 56:
        known["  p99 "] = micros(stage.p99_us)
    parts = [part for name, value in known.items() for part in ((name, DIM), (value, "bold"))]
    # A lone batch still shows as a floor.
    drawn = course(np.where(counts > 0, counts, np.nan), width, max(1, min(12, height - 2)))
    axis = _time(edges[0]) + _time(edges[-1]).rjust(width - len(_time(edges[0])))
    return lines([line(*parts), *(line((row, _STYLES[number])) for row in drawn), dim(axis)])


def histogram(values: Ints) -> tuple[Ints, npt.NDArray[np.float64]]:
    """Counts in equal steps of a factor, and the edges of these."""
    low, high = float(values.min()), float(values.max())
    decades = max(LEAST_DECADES, np.log10(high / low))
    # Equal times are one column in the middle, not a wall.
    margin = 10 ** ((decades - np.log10(high / low)) / 2)
    edges = np.geomspace(low / margin, high * margin, round(decades * BINS_A_DECADE) + 1)
    return np.histogram(values, edges)


def _time(ns: Any) -> str:
    return duration(ns / 1e9) if ns >= 0 else UNKNOWN


@needs_loader
def slowest(v: LoaderView, width: int, height: int, by: str = "wait") -> Content:
    """The slowest of the newest batches by one stage: number, worker, times and cause."""
    b, wide = v.loader.batches, width >= 110
    names = "".join(f"{'▼' * (name == by) + name:>9}" for name in STAGES)
    at = f"{'at':>11}" if wide else ""
    rows = [dim(f"{'batch':>8}{'epoch':>6}{at}{'worker':>7}{names}  cause")]
    for row in slowest_rows(b[f"{by}_ns"]):
        worker = f"w{b['worker'][row]}" if b["worker"][row] >= 0 else UNKNOWN
        handed_ns = max(0, b["t_ns"][row] + max(0, b["wait_ns"][row]) - v.begin_ns)
        at = f"{_time(handed_ns):>11}" if wide else ""
        times = {name: _time(b[f"{name}_ns"][row]) for name in STAGES}
        cause = cause_of(v.loader, row)
        rows.append(
            line(
                f"{count(b['seq'][row]):>8}{b['epoch'][row]:>6}{at}{worker:>7}",
                *((f"{time:>9}", "bold" * (name == by)) for name, time in times.items()),
                (f"  {text(cause, 14):<12}", BAD),
                (f"  {CAUSES.get(cause, '')}" if wide else "", DIM),
            )
        )
    return lines(rows if len(rows) > 1 else [*rows, dim(f"no batch has a measured {by}")])


def slowest_rows(values: Ints) -> list[int]:
    """Rows of the largest values, largest first."""
    few = min(SLOWEST, len(values))
    rows = np.argpartition(values, len(values) - few)[-few:] if few else values
    return [int(row) for row in rows[np.argsort(-values[rows], kind="stable")] if values[row] >= 0]


def cause_of(loader: LoaderRun, row: int) -> str:
    """The largest part of a batch's wait."""
    batches = loader.batches
    one = Columns({name: values[row : row + 1] for name, values in batches.items()}, 1)
    first = first_of_epoch(batches["epoch"])[row : row + 1]
    found = waiting(replace(loader, batches=one, folded=Compacted()), first)
    causes = found.causes if found is not None and found.total_s > 0 else {}
    return max(causes, key=lambda name: causes[name].seconds, default="–")
