"""The host while the run was recorded: what the system sampler saw, in a few figures."""

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from ...profiler.base.arrays import Array, Floats
from ...profiler.store.lanes.columns import Columns
from ...profiler.store.run.run import ProcessRun, Run, SystemRun
from ..schema.report_model import GpuSummary, SystemSummary
from .measured import low, measured, peak
from .other_programs import others_cores, stolen, used_pct
from .process_rows import grown

MAX_GPUS = 256

_NO_SYSTEM = "the system sampler recorded nothing"

# Figure → the counter whose growth per second it is, and the figure's unit in the counter's.
_RATES = {
    "throttled_share": ("cgroup_throttled_ns", 1e-9),
    "disk_read_bytes_s": ("disk_read_bytes", 1.0),
    "net_recv_bytes_s": ("net_recv_bytes", 1.0),
}
# Figures that are the largest value of a column.
_PEAKS = {
    "mem_total_bytes": "mem_total_bytes",
    "cgroup_mem_limit_bytes": "cgroup_mem_limit_bytes",
    "cgroup_mem_peak_bytes": "cgroup_mem_bytes",
    "shm_total_bytes": "shm_total_bytes",
    "shm_used_peak_bytes": "shm_used_bytes",
}


def summarise(run: Run) -> SystemSummary:
    """The summary of the first host that was sampled; every None has its reason."""
    system = run.first_host
    local = [each for each in run.processes if system is None or system.ran(each)]
    if system is None:
        return _nothing(run, local)
    machine = system.machine
    processes = [own for _, own in _groups(system.process, "pid")]
    mains, workers = (
        [own for own in processes if (own["role"][0] == 1) == in_worker]
        for in_worker in (False, True)
    )
    busy = _busy(machine)
    linux = (run.platform or "").startswith("Linux")
    known: dict[str, Any] = {
        "effective_cpus": effective_cpus(local, system),
        "cpu_busy_mean_share": _over(busy),
        "cpu_busy_max_share": _over(busy, np.max),
        "cpu_iowait_mean_share": _over(machine.floats("cpu_iowait_pct").clip(0, 100) / 100),
        # Only Linux counts steal. Elsewhere the recorded shares leave nothing.
        "cpu_stolen_mean_share": _over(stolen(machine)) if linux else None,
        "others_cores": others_cores(system),
        "main_cpu_cores": _over([_cores(own) for own in mains]),
        "worker_cpu_mean_cores": _over([_cores(own) for own in workers]),
        "mem_available_min_bytes": low(machine["mem_available_bytes"]),
        **{name: _rate(machine, *counter) for name, counter in _RATES.items()},
    }
    for name, column in _PEAKS.items():
        known[name] = peak(machine[column]) or getattr(system, name, None)
    for name in ("read_disk_bytes", "read_all_bytes"):
        read = [_grown(own[name]) for own in mains]
        # A worker lives inside the run: all it counted is the run's.
        total = _over([*read, *(peak(own[name]) for own in workers)], np.sum)
        known[name] = int(total) if total is not None else None
    reasons = dict(system.reasons)
    for name, value in {**known, "gpus": system.gpu.rows or None}.items():
        if value is None:
            reasons.setdefault(name, _reason(name, system, len(workers)))
    return SystemSummary(
        host=system.host,
        samples=machine.rows,
        seconds=grown(machine, np.arange(machine.rows), "t_ns") / 1e9 or None,
        cores_logical=system.cores_logical,
        workers=len(workers),
        gpus=_gpus(system),
        reasons=reasons,
        **known,
    )


def effective_cpus(processes: list[ProcessRun], system: SystemRun | None) -> float | None:
    """What one rank may compute with: the CPUs of all ranks of this host (affinity, cgroup quota),
    divided by them, and no more than its own; None if neither is known. Without ranks, processes
    that record at the same time divide them."""
    sizes = [each.local_world_size for each in processes if each.local_world_size]
    ranks = {each.rank for each in processes if each.rank is not None}
    own: list[float] = [each.affinity for each in processes if each.affinity]
    pinned = frozenset().union(*(each.cpus for each in processes))
    whole = pinned and all(each.cpus for each in processes)
    shared: list[float] = [len(pinned)] if whole else [*own]
    if system is not None:
        if not pinned and system.affinity:  # the sampler's own is that of the rank that started it
            shared.append(system.affinity)
        if system.cgroup_cpu_quota:
            shared.append(system.cgroup_cpu_quota)
        if not shared and system.cores_logical:
            shared = [system.cores_logical]
    if not shared:
        return None
    return float(min([*own, min(shared) / max(1, *sizes, len(ranks), _at_once(processes))]))


def _at_once(processes: list[ProcessRun]) -> int:
    """The most processes that took batches at the same time, by their first and last."""
    moments: list[tuple[int, int]] = []
    for process in processes:
        times = [loader.batches["t_ns"] for loader in process.loaders if loader.batches.rows]
        if times:
            moments += [(min(int(t[0]) for t in times), 1), (max(int(t[-1]) for t in times), -1)]
    return max(np.cumsum([change for _, change in sorted(moments)]), default=0)


def sampler_cost(system: SystemRun) -> tuple[float | None, int | None]:
    """(CPU share of one core, peak resident bytes) of the sampler itself."""
    share = _rate(system.machine, "sampler_cpu_ns", 1e-9)
    return share, peak(system.machine["sampler_rss_bytes"])


def _nothing(run: Run, local: list[ProcessRun]) -> SystemSummary:
    reasons = (each.reasons["system"] for each in run.processes if "system" in each.reasons)
    reason = next(reasons, _NO_SYSTEM)
    known: dict[str, Any] = {
        **dict.fromkeys(each.name for each in fields(SystemSummary)),
        "host": next((each.host for each in local if each.host), run.host),
        "effective_cpus": effective_cpus(local, None),
        "reasons": dict.fromkeys(("system", "others_cores"), reason),
        **dict.fromkeys(("samples", "workers"), 0),
        "gpus": (),
    }
    return SystemSummary(**known)


def _reason(name: str, system: SystemRun, workers: int) -> str:
    if name == "others_cores":
        return system.reasons.get("system", "the run was too short for two samples of the CPUs")
    if not system.machine.rows:
        return _NO_SYSTEM
    if name.startswith("cgroup") or name == "throttled_share":
        return "no CPU or memory limit of a container was found"
    if name == "gpus":
        return "no GPU was found"
    if name == "worker_cpu_mean_cores" and not workers:
        return "no worker was running when a sample was taken"
    if name.startswith("shm"):
        return "no /dev/shm"
    if system.machine.rows < 2:
        return "the run was too short for two samples"
    return "not measured on this platform"


def _busy(machine: Columns) -> Floats:
    idle, iowait = machine.floats("cpu_idle_pct"), machine.floats("cpu_iowait_pct")
    by_idle = 100 - idle - np.nan_to_num(iowait)
    return np.clip(np.where(np.isnan(idle), used_pct(machine), by_idle), 0, 100) / 100


def _over(values: Floats | list[Any], how: Callable[[Floats], Any] = np.mean) -> float | None:
    """Their mean, or another sum of them, without those that are not known (None or NaN)."""
    known = np.array(values, np.float64)
    known = known[np.isfinite(known)]
    return float(how(known)) if len(known) else None


def _rate(columns: Columns, name: str, scale: float = 1.0) -> float | None:
    """Growth of a counter per second, over the samples that measured it."""
    known = np.flatnonzero(columns[name] >= 0)
    seconds = grown(columns, known, "t_ns") / 1e9
    return grown(columns, known, name) * scale / seconds if seconds else None


def _groups(columns: Columns, key: str) -> Iterator[tuple[int, Columns]]:
    """The rows of each value of this column, in order of time."""
    order = np.argsort(columns[key], kind="stable")
    found, begins = np.unique(columns[key][order], return_index=True)
    for value, rows in zip(found.tolist(), np.split(order, begins[1:]), strict=False):
        yield value, Columns({name: columns[name][rows] for name in columns}, len(rows))


def _cores(own: Columns) -> float | None:
    """That a process used."""
    user, kernel = (_rate(own, f"cpu_{name}_ns", 1e-9) for name in ("user", "system"))
    return user + kernel if user is not None and kernel is not None else None


def _grown(counter: Array) -> int | None:
    values = measured(counter)
    return max(0, int(values[-1]) - int(values[0])) if len(values) else None


def _gpus(system: SystemRun) -> tuple[GpuSummary, ...]:
    names = {info.index: info.name for info in system.gpus}
    return tuple(
        GpuSummary(
            index=index,
            name=names.get(index),
            util_mean_share=_over(own.floats("util_pct") / 100),
            mem_peak_bytes=peak(own["mem_used_bytes"]),
            mem_total_bytes=peak(own["mem_total_bytes"]),
            power_mean_w=_over(own.floats("power_mw") / 1000),
        )
        for index, own in [*_groups(system.gpu, "gpu")][:MAX_GPUS]
    )
