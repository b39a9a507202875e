"""Waiting for a core: time in which work was ready to run and no core was free. It looks like I/O
on a wall clock.

Linux counts it for each thread (schedstat); the sampler reads it for the main thread of each
process, which is the one that fetches and collates.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...profiler.store.lanes.columns import Columns
from ...profiler.store.run.run import LoaderRun, ProcessRun, Run

# With less CPU time than this between two samples, the ratio is the clock ticks' noise.
LEAST_CPU_NS = 50e6
# A ratio beyond this would multiply measured CPU time twentyfold: nothing is known then but that it
# is much.
MOST = 0.95


def core_wait_ratio(
    run: Run, process: ProcessRun, loader: LoaderRun, in_main: bool
) -> float | None:
    """Waiting for a core ÷ (that + CPU time), of the training process (`in_main`) or of this
    loader's workers.

    Work that took `cpu` seconds of CPU time took cpu / (1 - ratio) on the wall clock, beside any
    I/O. None without samples, or on a system that does not count it.
    """
    system = run.host_of(process)
    if system is None or not loader.batches.rows:
        return None
    lane = system.process
    begin, end = loop_span_ns(loader)
    known = (
        (lane["run_delay_ns"] >= 0)
        & (lane["cpu_user_ns"] >= 0)
        & (lane["t_ns"] >= begin)
        & (lane["t_ns"] <= end)
    )
    if in_main:
        mine = known & (lane["pid"] == process.pid) & (lane["role"] == 0)
    else:
        mine = known & (lane["owner_pid"] == process.pid) & (lane["role"] == 1)
        mine &= (lane["loader"] == loader.index) | (lane["loader"] < 0)
    rows = np.flatnonzero(mine)
    delay = cpu = 0.0
    for pid in np.unique(lane["pid"][rows]):
        own = rows[lane["pid"][rows] == pid]
        delay += _grown(lane, "run_delay_ns", own)
        cpu += _grown(lane, "cpu_user_ns", own) + _grown(lane, "cpu_system_ns", own)
    if cpu < LEAST_CPU_NS:
        return None
    return min(MOST, delay / (delay + cpu))


def loop_span_ns(loader: LoaderRun) -> tuple[int, int]:
    """When the loop asked for its first batch, and when it had its last; of a loader that gave
    any."""
    batches = loader.batches
    return int(batches["t_ns"][0]), int(batches["t_ns"][-1]) + max(0, int(batches["wait_ns"][-1]))


def waiting_share(idle: float | None, ratio: float | None) -> float | None:
    """Of a stage's wall time, spent waiting for I/O, locks and the like, a core not among them.

    `idle` is 1 - CPU / wall. Without a ratio all of it.
    """
    if idle is None or ratio is None:
        return idle
    return min(idle, max(0.0, 1 - (1 - idle) / (1 - ratio)))


def _grown(lane: Columns, name: str, rows: npt.NDArray[np.intp]) -> float:
    return (
        max(0.0, float(lane[name][rows[-1]]) - float(lane[name][rows[0]])) if len(rows) > 1 else 0.0
    )
