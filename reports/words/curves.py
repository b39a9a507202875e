"""What the system sampler saw of a host, as curves over time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...advisors.stage_model.measured import peak
from ...advisors.stage_model.other_programs import stolen
from ...profiler.base.arrays import Floats, Rows
from ...profiler.store.run.run import SystemRun
from .units import percent, size

MAX_GPUS = 8
# Column of the machine's samples → how it is named, and the column of its limit.
MEMORY = {
    "mem_available_bytes": ("available", "mem_total_bytes"),
    "page_cache_bytes": ("page cache", ""),
    "cgroup_mem_bytes": ("charged to the container", "cgroup_mem_limit_bytes"),
    "shm_used_bytes": ("/dev/shm used", "shm_total_bytes"),
}
TRAFFIC = {
    "disk_read_bytes": "disk read",
    "disk_write_bytes": "disk written",
    "net_recv_bytes": "network received",
    "net_sent_bytes": "network sent",
}
# Chart of a GPU → its column, what makes one of its unit, and the column of its limit.
GPU = {
    "gpu": ("util_pct", 1.0, ""),
    "gpu-memory": ("mem_used_bytes", 1.0, "mem_total_bytes"),
    "gpu-power": ("power_mw", 1e3, ""),
}
# Chart → how one of its values reads.
READ: dict[str, Callable[[float], str]] = {
    **dict.fromkeys(("cpu", "throttled", "gpu"), lambda value: percent(value / 100)),
    **dict.fromkeys(("memory", "gpu-memory"), size),
    "io": lambda value: f"{size(value)}/s",
    "gpu-power": "{:.0f} W".format,
}
LEAST_STOLEN_PCT = 1.0  # most machines have nothing stolen: a curve only where there is


@dataclass(frozen=True)
class Curve:
    """`chart` groups curves of one unit: cpu and throttled (percent), memory (bytes), io (bytes a
    second), gpu (percent), gpu-memory (bytes) or gpu-power (watts). Times are nanoseconds of the
    host. `limit`: of the values, where there is one."""

    chart: str
    name: str
    t_ns: Floats
    values: Floats
    limit: float | None = None


def curves(system: SystemRun) -> Iterator[Curve]:
    """Every curve of a host of which something was measured, chart by chart."""
    for each in _all(system):
        known = np.isfinite(each.values)
        if known.any():
            yield replace(each, t_ns=each.t_ns[known], values=each.values[known])


def _all(system: SystemRun) -> Iterator[Curve]:
    machine, t = system.machine, system.machine.floats("t_ns")
    iowait, taken = machine.floats("cpu_iowait_pct"), stolen(machine) * 100
    busy = 100 - machine.floats("cpu_idle_pct") - np.nan_to_num(iowait)
    yield Curve("cpu", "busy", t, busy, 100.0)
    yield Curve("cpu", "idle with I/O outstanding", t, iowait, 100.0)
    if np.nan_to_num(taken).max(initial=0.0) >= LEAST_STOLEN_PCT:
        yield Curve("cpu", "taken by the hypervisor", t, taken, 100.0)
    at, held_ns = _growth(t, machine.floats("cgroup_throttled_ns"))
    yield Curve("throttled", "throttled", at, held_ns / 1e7)
    for column, (name, limit) in MEMORY.items():
        top = peak(machine[limit]) if limit else None
        yield Curve("memory", name, t, machine.floats(column), top)
    for column, name in TRAFFIC.items():
        yield Curve("io", name, *_growth(t, machine.floats(column)))
    names = {info.index: info.name for info in system.gpus}
    gpus = np.unique(system.gpu["gpu"]).tolist()[:MAX_GPUS]
    for chart, (column, unit, limit) in GPU.items():
        for index in gpus:
            rows = system.gpu["gpu"] == index
            name = f"GPU {index} {names.get(index) or ''}".strip()
            at, values = (system.gpu.floats(each)[rows] for each in ("t_ns", column))
            top = peak(system.gpu[limit][rows]) if limit else None
            yield Curve(chart, name, at, values / unit, top)


def _growth(t: Floats, total: Floats) -> tuple[Floats, Floats]:
    """Growth of a counter a second, between one sample that measured it and the next."""
    known = np.isfinite(total)
    t, passed = t[known], np.diff(t[known]) / 1e9
    unknown = np.full(len(passed), np.nan)
    grown = np.divide(np.diff(total[known]), passed, out=unknown, where=passed > 0)
    return t[1:], np.where(grown >= 0, grown, np.nan)


def resampled(values: Sequence[float | None] | Floats, places: int) -> tuple[Rows, Floats]:
    """Where the runs of values at so many places begin, and their means: a value is repeated where
    there are fewer; NaN where nothing was measured."""
    data = np.asarray(values, np.float64)
    if not len(data) or places <= 0:
        return np.empty(0, np.intp), np.empty(0)
    begins, known = np.arange(places) * len(data) // places, np.isfinite(data)
    sums, counts = (
        np.add.reduceat(each, begins) for each in (np.where(known, data, 0.0), known * 1.0)
    )
    return begins, sums / np.where(counts > 0, counts, np.nan)
