"""What a rank of a large job leaves beside its lanes when it ends: their totals, so that a report
of a thousand ranks reads a small file of each, and lanes of the few it speaks of."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ..base.atomic_write import write_atomically
from ..base.errors import RunUnreadable
from ..base.metadata import read_json, scalars, text
from ..base.schema import BATCH
from .rundir import FORMAT

SUMMARY = "summary.json"
# With fewer ranks all lanes are read anyway; with so many, each has little room, and its lanes are
# read in no time.
LEAST_RANKS = 8
# What tells one loader of a process from another, and how many make its batches.
FACTS = ("dataset", "phase", "place", "framework", "num_workers")


def write_summary(directory: Path) -> None:
    """Sum up the loaders of a process that has recorded into this folder. Raises OSError."""
    write_atomically(
        directory / SUMMARY,
        json.dumps({"format": FORMAT, "loaders": list(map(_loader, _told(directory)))}),
    )


def _told(directory: Path) -> list[tuple[Path, int]]:
    found = (
        (path, re.fullmatch(r"loader(\d{1,9})\.json", path.name)) for path in directory.iterdir()
    )
    return sorted(
        ((path, int(match[1])) for path, match in found if match), key=lambda each: each[1]
    )


def _loader(told: tuple[Path, int]) -> dict[str, Any]:
    from .lanes.columns import merge_compacted, merge_lanes, read_lane, with_compute
    from .lanes.lane_reader import batch_lanes
    from .lanes.steady_totals import steady_totals

    path, index = told
    try:
        data = read_json(path)
    except RunUnreadable:
        data = {}
    names = (each.name for each in path.parent.iterdir())
    lanes = [read_lane(path.parent, name, BATCH) for name in batch_lanes(names, index)]
    batches = merge_lanes([with_compute(lane.columns) for lane in lanes], BATCH)
    folded = merge_compacted([lane.compacted for lane in lanes])
    steady, columns = steady_totals(batches, folded)
    config = scalars(data, "config")
    return {
        "index": index,
        "name": text(data, "name") or f"loader {index}",
        "kind": "iterable" if data.get("kind") == "iterable" else "dataloader",
        "facts": {name: config.get(name) for name in FACTS},
        "batches": batches.rows + folded.records,
        "steady": steady,
        "columns": {
            name: [each.count, each.total, each.low, each.high, sorted(each.bins.items())]
            for name, each in columns.items()
        },
    }
