"""Compaction: a lane's oldest segments become totals when its room is used up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...base.atomic_write import write_atomically
from .compacted import Compacted, compacted_path

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def derive_compute(
    records: npt.NDArray[Any] | Mapping[str, npt.NDArray[Any]],
) -> npt.NDArray[np.int64]:
    """Compute time a batch, ns: from hand-over to the next next() of the same iteration; -1 where
    it is not known."""
    import numpy as np

    compute: npt.NDArray[np.int64] = records["compute_ns"].astype(np.int64)
    handed = records["t_ns"] + records["wait_ns"]
    gap = records["t_ns"][1:] - handed[:-1]
    known = (compute[:-1] < 0) & (records["epoch"][1:] == records["epoch"][:-1]) & (gap >= 0)
    compute[:-1][known] = gap[known]
    return compute


class Compactor:
    """Adds a lane's oldest segments to what is left of it, in its `.fold.json`, one at a time."""

    def __init__(self, directory: Path, name: str) -> None:
        self.directory = directory
        self.name = name
        self.compacted = Compacted()

    def __call__(self, path: Path) -> None:
        """Add one segment and write the totals; the caller unlinks the segment after. Raises
        OSError."""
        from .lane_reader import read_segment

        records, _ = read_segment(path)
        if not len(records):
            return
        derives = "compute_ns" in (records.dtype.names or ())
        self.compacted.add(records, derive_compute(records) if derives else None)
        write_atomically(compacted_path(self.directory, self.name), self.compacted.to_json())
