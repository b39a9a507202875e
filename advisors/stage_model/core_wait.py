"""Waiting for a core: time in which work was ready to run and no core was free. It looks like I/O
on a wall clock.

Linux counts it for each thread (schedstat); the sampler reads it for the main thread of each
process, which is the one that fetches and collates.
"""

from ...profiler.store.run.run import LoaderRun, ProcessRun, Run
from .process_rows import grown, process_rows

# With less CPU time than this between two samples, the ratio is the clock ticks' noise.
LEAST_CPU_NS = 50e6
# A ratio beyond this would multiply measured CPU time twentyfold: all that is known then is that it
# is large.
MOST = 0.95


def core_wait_ratio(
    run: Run, process: ProcessRun, loader: LoaderRun, in_main: bool
) -> float | None:
    """Waiting for a core ÷ (that + CPU time), of the training process (`in_main`) or of this
    loader's workers.

    Work that took `cpu` seconds of CPU time took cpu / (1 - ratio) on the wall clock, besides any
    I/O. None without samples, or on a system that does not count it.
    """
    names = "run_delay_ns", "cpu_user_ns", "cpu_system_ns"
    delay, *cpu = grown_in_loop(run, process, loader, in_main, *names)
    return min(MOST, delay / (delay + sum(cpu))) if sum(cpu) >= LEAST_CPU_NS else None


def kernel_share(run: Run, process: ProcessRun, loader: LoaderRun, in_main: bool) -> float:
    """The part of the CPU time of the training process, or of this loader's workers, that the
    kernel used. 0 without samples."""
    kernel, user = grown_in_loop(run, process, loader, in_main, "cpu_system_ns", "cpu_user_ns")
    return kernel / (kernel + user) if kernel + user >= LEAST_CPU_NS else 0.0


def grown_in_loop(
    run: Run, process: ProcessRun, loader: LoaderRun, in_main: bool, *names: str
) -> list[float]:
    """How much these counters of processes grew while the loop ran, where all are known."""
    system = run.host_of(process)
    if system is None or not loader.batches.rows:
        return [0.0] * len(names)
    lane = system.process
    begin, end = loop_span_ns(loader)
    known = (lane["t_ns"] >= begin) & (lane["t_ns"] <= end)
    for name in names:
        known &= lane[name] >= 0
    every = process_rows(lane, process, loader, in_main=in_main)
    return [sum(grown(lane, rows[known[rows]], name) for rows in every) for name in names]


def loop_span_ns(loader: LoaderRun) -> tuple[int, int]:
    """When the loop asked for its first batch, and when it had its last; of a loader that gave
    any."""
    batches = loader.batches
    return int(batches["t_ns"][0]), int(batches["t_ns"][-1]) + max(0, int(batches["wait_ns"][-1]))


def waiting_besides_core(idle: float | None, ratio: float | None) -> float | None:
    """Of a stage's wall time, spent waiting for I/O, locks and the like, a core not among them.

    `idle` is 1 - CPU / wall. Without a ratio all of it.
    """
    if idle is None or ratio is None:
        return idle
    return min(idle, max(0.0, 1 - (1 - idle) / (1 - ratio)))
