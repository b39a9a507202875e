"""What other programs take of the CPUs that a training process may use: workers would have to share
those with them."""

import numpy as np

from ...profiler.base.arrays import Floats
from ...profiler.store.lanes.columns import Columns
from ...profiler.store.run.run import SystemRun
from .process_rows import grown

# Over less time than this, shares are as coarse as the kernel's clock ticks.
LEAST_NS = 0.5e9


def others_share(system: SystemRun | None, cpus: float | None) -> float:
    """Of so many CPUs that one rank may use, the share (0 to 1) that programs beside this run kept
    busy. They may use the others of the machine as much as they like."""
    others = others_cores(system) if system is not None else None
    if system is None or others is None or not cpus:
        return 0.0
    room = max(0.0, (system.cores_logical or cpus) - cpus)
    return min(1.0, max(0.0, others - room) / cpus)


def others_cores(system: SystemRun) -> float | None:
    """Cores that programs beside this run and its sampler kept busy while it was sampled. None
    without samples of LEAST_NS."""
    if not system.cores_logical:
        return None
    machine, t_ns = system.machine, system.machine["t_ns"].astype(np.float64)
    if not len(t_ns) or (span := t_ns[-1] - t_ns[0]) < LEAST_NS:
        return None
    # A sample's shares are of the time since the one before.
    busy = used_pct(machine)[1:] / 100 * system.cores_logical
    known = np.isfinite(busy)
    if not known.any():
        return None
    taken = np.average(busy[known], weights=np.diff(t_ns)[known])
    lane = system.process
    pids, owners = lane["pid"].tolist(), lane["owner_pid"].tolist()
    last = {pid: at for at, pid in enumerate(pids)}
    # What a worker took that has ended is among the children's time of the process that started it.
    over = [last[pid] < last.get(owner, 0) for pid, owner in zip(pids, owners, strict=True)]
    counts = (lane["children_cpu_ns"] < 0) | ~np.array(over, bool)
    counts &= (lane["t_ns"] >= t_ns[0]) & (lane["t_ns"] <= t_ns[-1])
    own = grown(machine, np.flatnonzero(machine["sampler_cpu_ns"] >= 0), "sampler_cpu_ns")
    names = "cpu_user_ns", "cpu_system_ns", "children_cpu_ns"
    own += sum(grown(lane, np.flatnonzero(counts & (lane["pid"] == pid)), *names) for pid in last)
    return max(0.0, float(taken - own / span))


def used_pct(machine: Columns) -> Floats:
    """What programs used of all cores before each sample, in percent."""
    return machine.floats("cpu_user_pct") + machine.floats("cpu_system_pct")


def stolen(machine: Columns) -> Floats:
    """Of all cores' time before each sample, the share in which the hypervisor ran others though
    this machine had work (steal in proc(5)): what the recorded shares leave of the whole. NaN if
    not known."""
    left = 100 - used_pct(machine) - machine.floats("cpu_idle_pct")
    return np.clip(left - np.nan_to_num(machine.floats("cpu_iowait_pct")), 0, 100) / 100
