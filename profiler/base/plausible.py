"""The range of the numbers in a run directory. Numbers outside of it come from damage.

One table covers columns of lanes, totals and JSON files. Readers take impossible numbers as not
measured and say so, so that no later code meets infinite, negative or astronomic figures. Limits
are far above what any machine does. Most follow from the unit at the end of a name.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .arrays import Array

_MOST_OF_ANY = 1 << 62

# Columns and JSON keys by the largest number that they can hold.
_BY_LIMIT: tuple[tuple[float, str], ...] = (
    (1 << 17, "cpu_quota cgroup_cpu_quota cores_logical affinity torch_threads num_workers"),
    (1 << 17, "prefetch_factor rank local_rank world_size local_world_size instance index"),
    ((1 << 31) - 1, "pid owner worker_pid owner_pid batch_size power_mw rate_hz hook_ns own_ns"),
    (1 << 53, "batches samples dataset_len length create_time"),
    # CPU times of all cores since a process or machine began: 146 years of one core.
    (
        1 << 62,
        "cpu_user_ns cpu_system_ns children_cpu_ns run_delay_ns cgroup_throttled_ns sampler_cpu_ns",
    ),
    (1 << 62, "created_unix_ns unix_ns"),  # the calendar reaches it in 2116
    (math.inf, "digest"),
)
_NAMED = {name: most for most, names in _BY_LIMIT for name in names.split()}


@cache
def limit(name: str) -> float | None:
    """The largest number that a column or key of this name can hold; the smallest is 0. None for
    other names."""
    if name in _NAMED:
        return _NAMED[name]
    if name.endswith("clock_ns") or (name.endswith("_ns") and name.startswith("t_")):
        return 1 << 61  # 73 years after a boot
    if name.endswith("_ns"):
        return 1 << 52  # 52 days
    if name.endswith("_pct"):
        return 110  # rounding, and clocks that are read one after the other
    return 1 << 60 if name.endswith(("bytes", "bytes_s")) else None


def believable(name: str, value: float) -> bool:
    """Whether a key of this name can have this value. Other names may have any finite number of 63
    bits."""
    most = limit(name)
    # Both are false for NaN.
    return 0 <= value <= most if most is not None else abs(value) < _MOST_OF_ANY


def believed(records: Array) -> tuple[Array, int]:
    """The records with impossible values set to not measured (-1, NaN), and the number of those.

    Negative values also mean "not measured", and are not counted.
    """
    import numpy as np

    changed, count = records, 0
    with np.errstate(invalid="ignore"):  # NumPy 1.24 warns of comparisons with NaN
        for name in records.dtype.names or ():
            values, most = records[name], limit(name) or _MOST_OF_ANY
            whole = values.dtype.kind == "i"
            beyond = values > most
            wrong = beyond | (values < (-1 if whole else 0))
            if name == "seq" or not wrong.any():
                continue
            if changed is records:
                changed = records.copy()
            changed[name][wrong] = -1 if whole else np.nan
            count += int(beyond.sum())
    return changed, count
