"""What a lane keeps of segments it no longer has room for. Totals stay exact, percentiles within
4.5 %."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, ValidationError, convert

from ...base.errors import RunUnreadable
from ...base.metadata import read_object
from ...base.plausible import limit
from ...base.schema import MAX_CORES
from ...base.tolerant import Count, as_json

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Logarithmic bins, eight an octave: a bin's edges lie a factor 2**(1/8) = 1.09 apart.
BINS_PER_OCTAVE = 8
BINS = 45 * BINS_PER_OCTAVE  # up to 2**45 ns, almost ten hours

MAX_SEQ = 1 << 62  # no lane gets beyond this record: a bound against corrupt files
# Nor are a lane's totals, some hundred numbers a column, this large.
MAX_COMPACTED_BYTES = 16 << 20

# Not quantities that can be summed: times, identities, and counters that run since boot or birth.
LEFT_OUT = frozenset(
    {
        *("seq", "t_ns", "t_fetch_ns", "t_iter_ns", "t_first_ns", "t_end_ns"),
        *("task", "worker_pid", "worker", "flags", "epoch", "instance", "how", "digest"),
        *("pid", "owner_pid", "role", "loader", "gpu", "cpu_user_ns", "cpu_system_ns"),
        *("minor_faults", "major_faults", "ctx_voluntary", "ctx_involuntary", "run_delay_ns"),
        *("read_disk_bytes", "read_all_bytes", "disk_read_bytes", "disk_write_bytes"),
        *("net_recv_bytes", "net_sent_bytes", "cgroup_throttled_ns", "cgroup_nr_throttled"),
        *("context_switches", "sampler_cpu_ns"),
    }
)


class Totals(Struct, array_like=True):
    """One column's measured values: count, exact sum, extremes, and a logarithmic histogram as
    (bin, values) pairs."""

    count: Count = 0
    total: int | float = 0
    low: float = math.inf
    high: float = -math.inf
    bins: tuple[tuple[Annotated[int, Meta(ge=0, lt=BINS)], Count], ...] = ()

    def __post_init__(self) -> None:
        """Raises ValueError for numbers that contradict each other."""
        slack = 1e-6 * self.high * self.count  # a sum of floats is not exact
        if self.count and not (
            0 <= self.low <= self.high < math.inf
            and self.count * self.low - slack <= self.total <= self.count * self.high + slack
            and sum(count for _, count in self.bins) == self.count
        ):
            raise ValueError("its numbers make no sense")

    def add(self, values: npt.NDArray[Any]) -> None:
        """Add measured values (negative and NaN ones are unmeasured and are left out)."""
        import numpy as np

        values = values[values >= 0]
        if not len(values):
            return
        high = values.max().item()
        exact = values.dtype.kind in "iu" and high * len(values) < 1 << 63
        total = values.sum(dtype=np.int64 if exact else np.float64).item()
        where = (np.log2(np.maximum(values, 1)) * BINS_PER_OCTAVE).astype(np.int64)
        counts = np.bincount(where.clip(0, BINS - 1)).tolist()
        bins = tuple((bin_, count) for bin_, count in enumerate(counts) if count)
        self.merge(Totals(len(values), total, values.min().item(), high, bins))

    def merge(self, other: Totals) -> None:
        """Add what another column's totals hold."""
        self.count += other.count
        self.total += other.total
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.bins = tuple(sorted((Counter(dict(self.bins)) + Counter(dict(other.bins))).items()))

    def midpoints(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """The histogram as (values, counts): each bin's geometric middle, clipped to the
        extremes."""
        import numpy as np

        keys, counts = np.array(self.bins, dtype=np.int64).reshape(-1, 2).T
        return np.exp2((keys + 0.5) / BINS_PER_OCTAVE).clip(self.low, self.high), counts

    def quantiles(self, *shares: float) -> tuple[float, ...]:
        """The values below which these shares of all lie, to within a bin; there must be one value
        at least."""
        middles, counts = self.midpoints()
        reached = counts.cumsum()
        return tuple(float(middles[reached.searchsorted(share * reached[-1])]) for share in shares)


class Compacted(Struct):
    """What is left of the records up to and including `through_seq`: `NAME.fold.json`."""

    version: Literal[1] = 1
    through_seq: Annotated[int, Meta(ge=0, lt=MAX_SEQ)] = 0
    records: Count = 0
    t_first_ns: int = -1
    t_last_ns: int = -1
    columns: dict[str, Totals] = {}

    def __post_init__(self) -> None:
        """Raises ValueError for numbers that contradict each other."""
        last, latest = max(self.t_last_ns, -1), limit("t_ns") or 0
        if not (self.records <= self.through_seq and -1 <= self.t_first_ns <= last <= latest):
            raise ValueError("its numbers make no sense")
        for name, each in self.columns.items():
            if not 0 < each.count <= self.records * MAX_CORES or each.high > (
                limit(name) or MAX_SEQ
            ):
                raise ValueError("its numbers make no sense")

    def add(self, records: npt.NDArray[Any], compute: npt.NDArray[np.int64] | None = None) -> None:
        """Add the records that follow, one or more; `compute` holds their compute times, where
        those were derived."""
        names = records.dtype.names or ()
        for name in names:
            if name not in LEFT_OUT:
                values = compute if name == "compute_ns" and compute is not None else records[name]
                totals = self.columns.get(name, Totals())
                totals.add(values.ravel())
                if totals.count:  # a column that was never measured has none, here and in the file
                    self.columns[name] = totals
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
        return json.dumps(as_json(self))


def compacted_path(directory: Path, name: str) -> Path:
    return directory / f"{name}.fold.json"


def read_compacted(directory: Path, name: str) -> Compacted:
    """What was compacted of this lane; empty if nothing was. Raises RunUnreadable."""
    path = compacted_path(directory, name)
    try:
        return convert(read_object(path, MAX_COMPACTED_BYTES), Compacted)
    except RunUnreadable as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return Compacted()
        raise
    except (ValidationError, ValueError, TypeError, OverflowError) as error:
        raise RunUnreadable(f"{path} is corrupt: {error}") from error
