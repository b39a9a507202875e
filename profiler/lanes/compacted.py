"""What a lane keeps of segments it no longer has room for. Totals stay exact, percentiles within 4.5 %."""

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
        self.total += int(values.sum(dtype=np.int64)) if exact else float(values.sum(dtype=np.float64))
        self.low = min(self.low, values.min().item())
        self.high = max(self.high, high)
        where = (np.log2(np.maximum(values, 1)) * BINS_PER_OCTAVE).astype(np.int64).clip(0, BINS - 1)
        for bin_, count in enumerate(np.bincount(where)):
            if count:
                self.bins[bin_] = self.bins.get(bin_, 0) + int(count)

    def midpoints(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """The histogram as (values, counts): each bin's geometric middle, clipped to the extremes."""
        import numpy as np

        keys = np.array(sorted(self.bins), dtype=np.float64)
        values = np.exp2((keys + 0.5) / BINS_PER_OCTAVE).clip(self.low, self.high)
        return values, np.array([self.bins[int(key)] for key in keys], dtype=np.int64)


@dataclass
class Compacted:
    """What is left of the records up to and including `through_seq`."""

    through_seq: int = 0
    records: int = 0
    t_first_ns: int = -1
    t_last_ns: int = -1
    columns: dict[str, Totals] = field(default_factory=dict)

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
        """Raises ValueError for anything that is not a fold of this version."""
        try:
            data = json.loads(text)
            if data["version"] != 1:
                raise ValueError(f"fold version {data['version']!r}")
            columns = {
                str(name): Totals(int(count), total, float(low), float(high), {int(k): int(v) for k, v in bins})
                for name, (count, total, low, high, bins) in data["columns"].items()
            }
            first, last = int(data["t_first_ns"]), int(data["t_last_ns"])
            return cls(int(data["through_seq"]), int(data["records"]), first, last, columns)
        except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise ValueError(f"not a fold: {error}") from error


def fold_path(directory: Path, name: str) -> Path:
    return directory / f"{name}.fold.json"
