"""Which rows of the process lane are of a training process, or of the workers of one loader."""

import numpy as np

from ...profiler.base.arrays import Rows
from ...profiler.store.lanes.columns import Columns
from ...profiler.store.run.run import LoaderRun, ProcessRun


def process_rows(
    lane: Columns, process: ProcessRun | LoaderRun, loader: LoaderRun, *, in_main: bool
) -> list[Rows]:
    """Rows in order of time, one array per process: the training process (`in_main`) or workers.
    Only its `pid` is asked of `process`."""
    if in_main:
        mine = (lane["pid"] == process.pid) & (lane["role"] == 0)
    else:
        mine = (lane["owner_pid"] == process.pid) & (lane["role"] == 1)
        mine &= (lane["loader"] == loader.index) | (lane["loader"] < 0)
    rows = np.flatnonzero(mine)
    pids = lane["pid"][rows]
    return [rows[pids == pid] for pid in np.unique(pids)]


def grown(lane: Columns, rows: Rows, *names: str) -> float:
    """How much these counters grew from the first of the rows to the last."""
    if len(rows) < 2:
        return 0.0
    first, last = rows[0], rows[-1]
    return sum(max(0.0, float(lane[name][last]) - float(lane[name][first])) for name in names)
