"""Compaction: a lane's oldest segments become totals when its room is used up."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.atomic_write import write_atomically
from .compacted import Compacted, Totals, fold_path

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def derive_compute(records: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Compute time a batch, ns: from hand-over to the next next() of the same iteration; -1 where it is not known."""
    import numpy as np

    compute = records["compute_ns"].astype(np.int64)
    handed = records["t_ns"] + records["wait_ns"]
    gap = records["t_ns"][1:] - handed[:-1]
    known = (compute[:-1] < 0) & (records["epoch"][1:] == records["epoch"][:-1]) & (gap >= 0)
    compute[:-1][known] = gap[known]
    return compute


class Compactor:
    """Adds a lane's oldest segments to what is left of it, in its `.fold.json`, one at a time."""

    # Not quantities that can be summed: times, identities, and counters that run since boot or birth.
    LEFT_OUT = frozenset(
        {
            *("seq", "t_ns", "t_fetch_ns", "t_iter_ns", "t_first_ns", "t_end_ns"),
            *("task", "worker_pid", "worker", "flags", "epoch", "instance", "how", "digest"),
            *("pid", "owner_pid", "role", "loader", "gpu"),
            *("cpu_user_ns", "cpu_system_ns", "minor_faults", "major_faults", "ctx_voluntary", "ctx_involuntary"),
            *("run_delay_ns", "read_disk_bytes", "read_all_bytes", "disk_read_bytes", "disk_write_bytes"),
            *("net_recv_bytes", "net_sent_bytes", "cgroup_throttled_ns", "cgroup_nr_throttled"),
            *("context_switches", "sampler_cpu_ns"),
        }
    )

    def __init__(self, directory: Path, name: str) -> None:
        self.directory = directory
        self.name = name
        self.fold = Compacted()

    def __call__(self, path: Path) -> None:
        """Add one segment and write the fold; the caller unlinks the segment after. Raises OSError."""
        from .lane_reader import read_segment

        records, _ = read_segment(path)
        if not len(records):
            return
        names = records.dtype.names or ()
        for name in names:
            if name not in self.LEFT_OUT:
                values = derive_compute(records) if name == "compute_ns" else records[name]
                self.fold.columns.setdefault(name, Totals()).add(values.ravel())
        if "t_ns" in names:
            if self.fold.t_first_ns < 0:
                self.fold.t_first_ns = int(records["t_ns"][0])
            self.fold.t_last_ns = int(records["t_ns"][-1])
        self.fold.through_seq = int(records["seq"][-1])
        self.fold.records += len(records)
        write_atomically(fold_path(self.directory, self.name), self.fold.to_json())
