"""Totals of a column, and of the older records of a lane that is followed: exact sums, percentiles
within 4.5 %."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from ...base.tolerant import Count

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Logarithmic bins, eight an octave: a bin's edges lie a factor 2**(1/8) = 1.09 apart.
BINS_PER_OCTAVE = 8
BINS = 45 * BINS_PER_OCTAVE  # up to 2**45 ns, almost ten hours

# Fields of batches that cannot be summed: times and identities.
LEFT_OUT = ("seq", "t_ns", "t_fetch_ns", "task", "worker_pid", "worker", "flags", "epoch", "digest")


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
    """The oldest records of a lane, which are not given in detail: `records` of them, and the
    totals of those that were read (`columns`)."""

    records: int = 0
    columns: dict[str, Totals] = {}

    def add(self, records: npt.NDArray[Any], compute: npt.NDArray[np.int64] | None = None) -> None:
        """Add the records that follow, one or more; `compute` holds their compute times, where
        those were derived."""
        for name in records.dtype.names or ():
            if name not in LEFT_OUT:
                values = compute if name == "compute_ns" and compute is not None else records[name]
                totals = self.columns.get(name, Totals())
                totals.add(values.ravel())
                if totals.count:  # a column that was never measured has none
                    self.columns[name] = totals
        self.records = int(records["seq"][-1])

    def merge(self, other: Compacted) -> None:
        """Add another lane's."""
        self.records += other.records
        for name, totals in other.columns.items():
            self.columns.setdefault(name, Totals()).merge(totals)
