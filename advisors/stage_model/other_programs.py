"""What other programs take of the CPUs that a training process may use: workers would have to share
those with them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...profiler.store.lanes.columns import Columns
from ...profiler.store.run.run import LoaderRun, ProcessRun, Run, SystemRun
from .block_error import Floats
from .core_wait import loop_span_ns

# Over less time than this, shares are as coarse as the kernel's clock ticks.
LEAST_NS = 0.5e9


def others_share(run: Run, process: ProcessRun, loader: LoaderRun) -> float | None:
    """Of the CPUs that this process may use, the share (0 to 1) that was busy with what this run
    did not record, while this loader gave batches.

    Others may use CPUs beyond a quota as much as they like. Time that the hypervisor took belongs
    to no program. None without samples, if they span less than LEAST_NS, and if other ranks of the
    host, which have CPUs of their own, are not in this run.
    """
    system = run.host_of(process)
    here = sum(each.host == process.host for each in run.processes)
    if system is None or not loader.batches.rows or not system.cores_logical:
        return None
    if (process.local_world_size or 1) > here:
        return None
    t_ns, (begin, end) = system.machine["t_ns"], loop_span_ns(loader)
    cores, busy = _busy_cores(system, process)
    rows = np.flatnonzero((t_ns >= begin) & (t_ns <= end) & np.isfinite(busy))
    beside = _beside(system, t_ns[rows].astype(np.float64), busy[rows])
    if beside is None:
        return None
    room = max(0.0, cores - system.cgroup_cpu_quota) if system.cgroup_cpu_quota else 0.0
    return float(min(1.0, max(0.0, beside - room) / (cores - room)))


def others_cores(system: SystemRun) -> float | None:
    """Cores that programs beside this run and its sampler kept busy while it was sampled. None
    without samples of LEAST_NS."""
    if not system.cores_logical:
        return None
    busy = used_pct(system.machine) / 100 * system.cores_logical
    beside = _beside(system, system.machine["t_ns"].astype(np.float64), busy)
    return max(0.0, beside) if beside is not None else None


def used_pct(machine: Columns) -> Floats:
    """What programs used of all cores before each sample, in percent."""
    return machine.floats("cpu_user_pct") + machine.floats("cpu_system_pct")


def stolen(machine: Columns) -> Floats:
    """Of all cores' time before each sample, the share in which the hypervisor ran others though
    this machine had work (steal in proc(5)): what the recorded shares leave of the whole. NaN if
    not known."""
    left = 100 - used_pct(machine) - machine.floats("cpu_idle_pct")
    return np.clip(left - np.nan_to_num(machine.floats("cpu_iowait_pct")), 0, 100) / 100


def _beside(system: SystemRun, t_ns: Floats, busy: Floats) -> float | None:
    """Cores that this run and its sampler did not use, of those busy at these times."""
    if not len(t_ns) or (span := t_ns[-1] - t_ns[0]) < LEAST_NS:
        return None
    # A sample's shares are of the time since the one before.
    known = np.isfinite(busy[1:])
    if not known.any():
        return None
    taken = np.average(busy[1:][known], weights=np.diff(t_ns)[known])
    return float(taken - _used_ns(system, t_ns[0], t_ns[-1]) / span)


def _busy_cores(system: SystemRun, process: ProcessRun) -> tuple[float, Floats]:
    """(Cores this process may run on, how many of those were busy at each sample; NaN: unknown)."""
    machine, core = system.machine, system.core
    every = float(system.cores_logical or 1)
    if not process.cpus or len(process.cpus) >= every:
        return every, used_pct(machine) / 100 * every
    cores, found = float(len(process.cpus)), np.full(machine.rows, np.nan)
    if core.rows:
        shares = core["busy_pct"].reshape(core.rows, -1)
        mine = [cpu for cpu in sorted(process.cpus) if cpu < shares.shape[1]]
        _, here, there = np.intersect1d(machine["t_ns"], core["t_ns"], return_indices=True)
        found[here] = shares[there][:, mine].sum(axis=1) / 100 - stolen(machine)[here] * cores
    return cores, found


def _used_ns(system: SystemRun, begin: float, end: float) -> float:
    """CPU time that the processes of this run, and the sampler, took from `begin` to `end`."""
    lane, machine = system.process, system.machine
    sampled = np.flatnonzero(machine["sampler_cpu_ns"] >= 0)
    known = np.flatnonzero((lane["cpu_user_ns"] >= 0) & (lane["cpu_system_ns"] >= 0))
    pids = lane["pid"][known]
    counters = [(machine, sampled, "sampler_cpu_ns")] + [
        (lane, known[pids == pid], name)
        for pid in np.unique(pids)
        for name in ("cpu_user_ns", "cpu_system_ns")
    ]
    return sum(_between(columns, rows, begin, end, name) for columns, rows, name in counters)


def _between(
    lane: Columns, rows: npt.NDArray[np.intp], begin: float, end: float, name: str
) -> float:
    """How much a counter grew meanwhile, as if evenly between two samples."""
    if len(rows) < 2:
        return 0.0
    low, high = np.interp(
        [begin, end], lane["t_ns"][rows].astype(np.float64), lane[name][rows].astype(np.float64)
    )
    return float(high - low)
