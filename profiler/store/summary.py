"""The totals that a rank of a large job writes when it ends, from its own lanes."""

from __future__ import annotations

import json
from pathlib import Path

from ..base.atomic_write import write_atomically
from ..base.tolerant import as_json

# With fewer ranks all lanes are read anyway. With this many, each rank has little room, and its
# lanes are read in no time.
LEAST_RANKS = 8


def write_summary(directory: Path) -> None:
    """Sum up the loaders of a process that has recorded into this folder. Raises OSError."""
    from .run.loader_summary import SUMMARY, SummaryFile, summary_of
    from .run.run_reader import read_loaders

    loaders = tuple(map(summary_of, read_loaders(directory)))
    write_atomically(directory / SUMMARY, json.dumps(as_json(SummaryFile(1, loaders))))
