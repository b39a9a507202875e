"""The host while the run was recorded: what the system sampler saw, in a few figures."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ...profiler.store.lanes.columns import Columns
from ...profiler.store.run.run import ProcessRun, Run, SystemRun
from ..schema.report_model import GpuSummary, ProcessSummary, SystemSummary
from .measured import low, measured, peak

# Workers started anew each epoch leave many process ids: so many are listed, the sums cover all.
MAX_PROCESSES = 64
MAX_GPUS = 256

_NO_SYSTEM = "the system sampler recorded nothing"
_ONE_SAMPLE = "the run was too short for two samples"

Values = npt.NDArray[np.float64]


def summarise(run: Run) -> SystemSummary:
    """The summary of the first host that was sampled; every None has its reason."""
    system = run.first_host
    local = [p for p in run.processes if system is None or system.ran(p)]
    if system is None:
        return _nothing(run, local)
    machine = system.machine
    seconds = _seconds(machine)
    busy, iowait = _busy(machine), _share(machine, "cpu_iowait_pct")
    processes = _processes(system.process)
    workers = [p for p in processes if p.role == "worker"]
    mains = [p for p in processes if p.role == "main"]
    known: dict[str, Any] = {
        "effective_cpus": effective_cpus(local, system),
        "cpu_busy_mean_share": _mean(busy),
        "cpu_busy_max_share": _max(busy),
        "cpu_iowait_mean_share": _mean(iowait),
        # Elsewhere steal is not told, and the shares recorded leave nothing.
        "cpu_stolen_mean_share": _mean(stolen(machine))
        if (run.platform or "").startswith("Linux")
        else None,
        "throttled_share": _rate(machine, "cgroup_throttled_ns", 1e-9),
        "disk_read_bytes_s": _rate(machine, "disk_read_bytes"),
        "disk_write_bytes_s": _rate(machine, "disk_write_bytes"),
        "net_recv_bytes_s": _rate(machine, "net_recv_bytes"),
        "main_cpu_cores": _average([p.cpu_mean_cores for p in mains]),
        "worker_cpu_mean_cores": _average([p.cpu_mean_cores for p in workers]),
    }
    whole: dict[str, Any] = {
        "mem_total_bytes": peak(machine["mem_total_bytes"]) or system.mem_total_bytes,
        "mem_available_min_bytes": low(machine["mem_available_bytes"]),
        "cgroup_mem_limit_bytes": peak(machine["cgroup_mem_limit_bytes"])
        or system.cgroup_mem_limit_bytes,
        "cgroup_mem_peak_bytes": peak(machine["cgroup_mem_bytes"]),
        "shm_total_bytes": peak(machine["shm_total_bytes"]) or system.shm_total_bytes,
        "shm_used_peak_bytes": peak(machine["shm_used_bytes"]),
        "read_disk_bytes": _sum([p.read_disk_bytes for p in processes]),
        "read_all_bytes": _sum([p.read_all_bytes for p in processes]),
    }
    reasons = dict(system.reasons)
    for name, value in {**known, **whole, "gpus": system.gpu.rows or None}.items():
        if value is None:
            reasons.setdefault(name, _reason(name, system, workers))
    return SystemSummary(
        host=system.host,
        samples=machine.rows,
        seconds=seconds,
        cores_logical=system.cores_logical,
        workers=len(workers),
        processes=tuple(
            sorted(processes, key=lambda p: (p.role, p.worker or 0, p.pid))[:MAX_PROCESSES]
        ),
        gpus=_gpus(system),
        reasons=reasons,
        **known,
        **whole,
    )


def effective_cpus(processes: list[ProcessRun], system: SystemRun | None) -> float | None:
    """What one rank may compute with: the CPUs of all ranks of this host (affinity, cgroup quota),
    divided by them, and no more than its own; None where neither is known. Without ranks, recording
    at the same time makes a share."""
    told = [p.local_world_size for p in processes if p.local_world_size]
    ranks = max(
        [*told, len({p.rank for p in processes if p.rank is not None}), _at_once(processes)]
    )
    own: list[float] = [p.affinity for p in processes if p.affinity]
    pinned = frozenset().union(*(p.cpus for p in processes))
    shared: list[float] = [len(pinned)] if pinned and all(p.cpus for p in processes) else [*own]
    if system is not None:
        if not pinned and system.affinity:  # the sampler's own is that of the rank that started it
            shared.append(system.affinity)
        if system.cgroup_cpu_quota:
            shared.append(system.cgroup_cpu_quota)
        if not shared and system.cores_logical:
            shared = [system.cores_logical]
    return float(min([*own, min(shared) / max(1, ranks)])) if shared else None


def _at_once(processes: list[ProcessRun]) -> int:
    """The most processes that took batches at the same time, by their first and last."""
    moments: list[tuple[int, int]] = []
    for process in processes:
        times = [loader.batches["t_ns"] for loader in process.loaders if loader.batches.rows]
        if times:
            moments += [(min(int(t[0]) for t in times), 1), (max(int(t[-1]) for t in times), -1)]
    most = now = 0
    for _, change in sorted(moments):
        now += change
        most = max(most, now)
    return most


def stolen(machine: Columns) -> Values:
    """Of all cores' time before each sample, the share in which the hypervisor ran others though
    this machine had work (steal in proc(5)): what the shares recorded leave of the whole. NaN where
    not known."""
    shares = [machine.floats(f"cpu_{name}_pct") for name in ("user", "system", "idle")]
    left = 100 - sum(shares) - np.nan_to_num(machine.floats("cpu_iowait_pct"))
    return np.clip(left, 0, 100) / 100


def sampler_cost(system: SystemRun) -> tuple[float | None, int | None]:
    """(CPU share of one core, peak resident bytes) of the sampler itself."""
    share = _rate(system.machine, "sampler_cpu_ns", 1e-9)
    return share, peak(system.machine["sampler_rss_bytes"])


def _nothing(run: Run, local: list[ProcessRun]) -> SystemSummary:
    host = next((p.host for p in local if p.host), run.host)
    said = next((p.reasons["system"] for p in run.processes if "system" in p.reasons), _NO_SYSTEM)
    known: dict[str, Any] = {
        "host": host,
        "effective_cpus": effective_cpus(local, None),
        "reasons": {"system": said},
    }
    known.update(samples=0, workers=0, processes=(), gpus=())
    return SystemSummary(**{**dict.fromkeys(each.name for each in fields(SystemSummary)), **known})


def _reason(name: str, system: SystemRun, workers: list[ProcessSummary]) -> str:
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
    return _ONE_SAMPLE if system.machine.rows < 2 else "not measured on this platform"


def _seconds(columns: Columns) -> float | None:
    t = columns["t_ns"]
    return float(t[-1] - t[0]) / 1e9 if len(t) > 1 and t[-1] > t[0] else None


def _busy(machine: Columns) -> Values:
    idle, iowait = machine.floats("cpu_idle_pct"), machine.floats("cpu_iowait_pct")
    used = machine.floats("cpu_user_pct") + machine.floats("cpu_system_pct")
    by_idle = 100 - idle - np.nan_to_num(iowait, nan=0.0)
    return np.clip(np.where(np.isnan(idle), used, by_idle), 0, 100) / 100


def _share(machine: Columns, name: str) -> Values:
    return np.clip(machine.floats(name), 0, 100) / 100


def _mean(values: Values) -> float | None:
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else None


def _max(values: Values) -> float | None:
    values = values[np.isfinite(values)]
    return float(values.max()) if len(values) else None


def _rate(columns: Columns, name: str, scale: float = 1.0) -> float | None:
    """Growth of a counter a second, over the samples that measured it."""
    where = np.flatnonzero(columns[name] >= 0)
    if len(where) < 2:
        return None
    first, last = where[0], where[-1]
    seconds = float(columns["t_ns"][last] - columns["t_ns"][first]) / 1e9
    if seconds <= 0:
        return None
    return max(0.0, float(columns[name][last]) - float(columns[name][first])) * scale / seconds


def _average(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _sum(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _processes(process: Columns) -> list[ProcessSummary]:
    if not process.rows:
        return []
    order = np.argsort(process["pid"], kind="stable")
    pid = process["pid"][order]
    edges = [0, *(np.flatnonzero(pid[1:] != pid[:-1]) + 1).tolist(), len(pid)]
    return [_process(process, order[begin:end]) for begin, end in pairwise(edges)]


def _process(process: Columns, rows: npt.NDArray[np.intp]) -> ProcessSummary:
    own = Columns({name: process[name][rows] for name in process}, len(rows))
    role: Literal["main", "worker"] = "worker" if own["role"][0] == 1 else "main"
    user, kernel = _rate(own, "cpu_user_ns", 1e-9), _rate(own, "cpu_system_ns", 1e-9)
    worker = int(own["worker"][0])
    return ProcessSummary(
        pid=int(own["pid"][0]),
        role=role,
        worker=worker if role == "worker" and worker >= 0 else None,
        cpu_mean_cores=user + kernel if user is not None and kernel is not None else None,
        rss_peak_bytes=peak(own["rss_bytes"]),
        uss_peak_bytes=peak(own["uss_bytes"]),
        pss_peak_bytes=peak(own["pss_bytes"]),
        threads_max=peak(own["threads"]),
        fds_max=peak(own["fds"]),
        major_faults=_grown(own, "major_faults", role),
        read_disk_bytes=_grown(own, "read_disk_bytes", role),
        read_all_bytes=_grown(own, "read_all_bytes", role),
    )


def _grown(own: Columns, name: str, role: str) -> int | None:
    """Growth of a counter. A worker lives inside the run: all it counted is the run's."""
    values = measured(own[name])
    if not len(values):
        return None
    return int(values[-1]) if role == "worker" else max(0, int(values[-1]) - int(values[0]))


def _gpus(system: SystemRun) -> tuple[GpuSummary, ...]:
    gpu = system.gpu
    names = {info.index: info.name for info in system.gpus}
    found = []
    for index in np.unique(gpu["gpu"]).tolist()[:MAX_GPUS]:
        rows = np.flatnonzero(gpu["gpu"] == index)
        own = Columns({name: gpu[name][rows] for name in gpu}, len(rows))
        util, power = _mean(own.floats("util_pct")), _mean(own.floats("power_mw"))
        found.append(
            GpuSummary(
                index=index,
                name=names.get(index),
                util_mean_share=util / 100 if util is not None else None,
                mem_peak_bytes=peak(own["mem_used_bytes"]),
                mem_total_bytes=peak(own["mem_total_bytes"]),
                power_mean_w=power / 1000 if power is not None else None,
                pcie_rx_mean_bytes_s=_mean(own.floats("pcie_rx_bytes_s")),
            )
        )
    return tuple(found)
