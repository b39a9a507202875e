"""The fifth screen: how times are spread, and the slowest batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from textual.content import Content

from ...advisors.stage_model.measured import measured
from ...reports.document.stages import slowest_batches
from ...reports.words.units import UNKNOWN, duration, micros
from ..snapshot import LoaderView
from .marks import (
    BAD,
    DIM,
    GOOD,
    MARK,
    SECOND,
    blocks,
    course,
    dim,
    line,
    lines,
    needs_loader,
    text,
)

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
    """The slowest of the newest batches by one stage."""
    found = slowest_batches(v.loader, by)
    return blocks(found, width) if found else dim(f"no batch has a measured {by}")
