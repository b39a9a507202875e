"""The figures of a live run, read from its directory in bounded memory. Each reading covers the
batches since the previous one. The training loop is not involved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..advisors.stage_model.measured import mean
from ..advisors.stage_model.shares import waiting_share
from ..advisors.stage_model.verdict import lost_time
from ..profiler.base.liveness import Liveness
from ..profiler.base.schema import BATCH, EPOCH, Schema
from ..profiler.store.lanes.columns import Columns, LaneContent, read_lane
from ..profiler.store.run.run import LoaderRun
from ..profiler.store.run.run_reader import read_run

# Newest batches kept of each lane. If there are more between two readings, these count.
KEPT_ROWS = 4096

# Name → meaning.
FIGURES = {
    "wait_share": "Share of the loop's time spent waiting for data since the last reading",
    "batches_per_s": "Batches a second of the loop since the last reading",
    "make_s": "Mean time to fetch and collate a batch, in the worker or process that made it",
    "headroom": "Factor on the loop's speed if loading were free",
}


@dataclass(frozen=True)
class Figure:
    """One value. `labels`: loader, phase and rank, if known. `batches`: the loader's count so
    far."""

    name: str
    value: float
    labels: Mapping[str, str]
    batches: int


class LiveFigures:
    """Reads one run directory repeatedly. Not for two threads at a time."""

    def __init__(self, run: Path) -> None:
        self._path = run
        self._seen: dict[tuple[str, int], int] = {}

    def read(self) -> list[Figure]:
        """New figures; none for a loader without new batches. Raises RunUnreadable."""
        run = read_run(self._path, Liveness(), _lane)
        return [
            figure
            for process in run.processes
            for loader in process.loaders
            for figure in self._of((process.path.name, loader.index), loader)
        ]

    def _of(self, place: tuple[str, int], loader: LoaderRun) -> Iterator[Figure]:
        batches, lost = loader.batches, lost_time(loader)
        new = lost.known & (batches["t_ns"] > self._seen.get(place, -1))
        if not new.any():
            return
        self._seen[place] = int(batches["t_ns"][new].max())
        step, gone = float(lost.step[new].sum()), float(lost.lost[new].sum())
        facts = {"loader": loader.name, "phase": loader.config.get("phase"), "rank": loader.rank}
        labels = {name: str(value) for name, value in facts.items() if value is not None}
        fetch, collate = batches["fetch_ns"][new], batches["collate_ns"][new]
        make_ns = mean(np.where(fetch >= 0, fetch + collate.clip(0), -1))
        figures = {
            "wait_share": waiting_share(batches["wait_ns"][new], lost.step[new]) if step else None,
            "batches_per_s": np.count_nonzero(new) / step * 1e9 if step else None,
            "make_s": make_ns / 1e9 if make_ns is not None else None,
            "headroom": step / (step - gone) if step > gone else None,
        }
        for name, value in figures.items():
            if value is not None:
                yield Figure(name, float(value), labels, int(batches["seq"].max()))


def _lane(directory: Path, name: str, schema: Schema) -> LaneContent:
    if schema not in (BATCH, EPOCH):
        return LaneContent(Columns.empty(schema))
    return read_lane(directory, name, schema, KEPT_ROWS)
