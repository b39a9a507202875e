"""What a lane keeps of segments it no longer has room for. Totals stay exact, percentiles within
4.5 %."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Logarithmic bins, eight an octave: a bin's edges lie a factor 2**(1/8) = 1.09 apart.
BINS_PER_OCTAVE = 8
BINS = 45 * BINS_PER_OCTAVE  # up to 2**45 ns, almost ten hours

# Not quantities that can be summed: times, identities, and counters that run since boot or birth.
LEFT_OUT = frozenset(
    {
        *("seq", "t_ns", "t_fetch_ns", "t_iter_ns", "t_first_ns", "t_end_ns"),
        *("task", "worker_pid", "worker", "flags", "epoch", "instance", "how", "digest"),
        *("pid", "owner_pid", "role", "loader", "gpu"),
        *(
            "cpu_user_ns",
            "cpu_system_ns",
            "minor_faults",
            "major_faults",
            "ctx_voluntary",
            "ctx_involuntary",
        ),
        *(
            "run_delay_ns",
            "read_disk_bytes",
            "read_all_bytes",
            "disk_read_bytes",
            "disk_write_bytes",
        ),
        *("net_recv_bytes", "net_sent_bytes", "cgroup_throttled_ns", "cgroup_nr_throttled"),
        *("context_switches", "sampler_cpu_ns"),
    }
)


@dataclass
class Totals:
    """One column's measured values: count, exact sum, extremes and a logarithmic histogram."""

    count: int = 0
    total: float = 0
    low: float = math.inf
    high: float = -math.inf
    bins: dict[int, int] = field(default_factory=dict)

    def add(self, values: npt.NDArray[Any]) -> None:
        """Add measured values (negative and NaN ones are unmeasured and are left out)."""
        import numpy as np

        values = values[values >= 0]
        if not len(values):
            return
        high = values.max().item()
        exact = values.dtype.kind in "iu" and high * len(values) < 1 << 63
        self.count += len(values)
        self.total += (
            int(values.sum(dtype=np.int64)) if exact else float(values.sum(dtype=np.float64))
        )
        self.low = min(self.low, values.min().item())
        self.high = max(self.high, high)
        where = (
            (np.log2(np.maximum(values, 1)) * BINS_PER_OCTAVE).astype(np.int64).clip(0, BINS - 1)
        )
        for bin_, count in enumerate(np.bincount(where)):
            if count:
                self.bins[bin_] = self.bins.get(bin_, 0) + int(count)

    def merge(self, other: Totals) -> None:
        """Add what another column's totals hold."""
        self.count += other.count
        self.total += other.total
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        for bin_, count in other.bins.items():
            self.bins[bin_] = self.bins.get(bin_, 0) + count

    def midpoints(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """The histogram as (values, counts): each bin's geometric middle, clipped to the
        extremes."""
        import numpy as np

        keys = np.array(sorted(self.bins), dtype=np.float64)
        values = np.exp2((keys + 0.5) / BINS_PER_OCTAVE).clip(self.low, self.high)
        return values, np.array([self.bins[int(key)] for key in keys], dtype=np.int64)

    def quantiles(self, *shares: float) -> tuple[float, ...]:
        """The values below which these shares of all lie, to within a bin; there must be one value
        at least."""
        middles, counts = self.midpoints()
        reached = counts.cumsum()
        return tuple(float(middles[reached.searchsorted(share * reached[-1])]) for share in shares)


@dataclass
class Compacted:
    """What is left of the records up to and including `through_seq`."""

    through_seq: int = 0
    records: int = 0
    t_first_ns: int = -1
    t_last_ns: int = -1
    columns: dict[str, Totals] = field(default_factory=dict)

    def add(self, records: npt.NDArray[Any], compute: npt.NDArray[np.int64] | None = None) -> None:
        """Add the records that follow, one or more; `compute` holds their compute times, where
        those were derived."""
        names = records.dtype.names or ()
        for name in names:
            if name not in LEFT_OUT:
                values = compute if name == "compute_ns" and compute is not None else records[name]
                self.columns.setdefault(name, Totals()).add(values.ravel())
        if "t_ns" in names:
            if self.t_first_ns < 0:
                self.t_first_ns = int(records["t_ns"][0])
            self.t_last_ns = int(records["t_ns"][-1])
        self.through_seq = int(records["seq"][-1])
        self.records += len(records)

    def merge(self, other: Compacted) -> None:
        """Add another lane's; `through_seq` has no meaning then and is the sum."""
        self.through_seq += other.through_seq
        self.records += other.records
        self.t_first_ns = min(
            (t for t in (self.t_first_ns, other.t_first_ns) if t >= 0), default=-1
        )
        self.t_last_ns = max(self.t_last_ns, other.t_last_ns)
        for name, totals in other.columns.items():
            self.columns.setdefault(name, Totals()).merge(totals)

    def to_json(self) -> str:
        return json.dumps(
            {
                "version": 1,
                "through_seq": self.through_seq,
                "records": self.records,
                "t_first_ns": self.t_first_ns,
                "t_last_ns": self.t_last_ns,
                "columns": {
                    name: [t.count, t.total, t.low, t.high, sorted(t.bins.items())]
                    for name, t in self.columns.items()
                    if t.count
                },
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Compacted:
        """Raises ValueError for anything but totals of this version."""
        try:
            data = json.loads(text)
            if data["version"] != 1:
                raise ValueError(f"version {data['version']!r}")
            columns = {
                str(name): Totals(
                    int(count), total, float(low), float(high), {int(k): int(v) for k, v in bins}
                )
                for name, (count, total, low, high, bins) in data["columns"].items()
            }
            first, last = int(data["t_first_ns"]), int(data["t_last_ns"])
            return cls(int(data["through_seq"]), int(data["records"]), first, last, columns)
        except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise ValueError(f"not a lane's totals: {error}") from error


def compacted_path(directory: Path, name: str) -> Path:
    return directory / f"{name}.fold.json"
