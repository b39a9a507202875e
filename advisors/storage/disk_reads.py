"""What the processes of one loader read, by epoch: from the process lane of the system sampler.

A worker's counters begin with it. The training process's counters also hold those of workers that
ended, so with workers only theirs are counted. Counters are a second or so apart: what an epoch
read is right within one sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...profiler.store.run.run import LoaderRun, SystemRun
from ..case.case import Case

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Reads:
    """Bytes: by system calls, page cache included, and of them from the storage (None where that is
    not told)."""

    any_bytes: float
    disk_bytes: float | None


def loader_reads(
    case: Case, begin_ns: int | None = None, end_ns: int | None = None
) -> Reads | None:
    """What was read between two times, by default in the whole run. None without a sampler or its
    counters."""
    if case.host is None:
        return None
    return reads_of(case.host, case.loader, begin_ns, end_ns)


def reads_of(
    system: SystemRun, loader: LoaderRun, begin_ns: int | None = None, end_ns: int | None = None
) -> Reads | None:
    """The same from the samples of the loader's host."""
    process = system.process
    role = 1 if loader.num_workers else 0
    mine = (process["owner_pid"] == loader.pid) & (process["role"] == role)
    if role:
        mine &= (process["loader"] == loader.index) | (process["loader"] < 0)
    found: dict[str, float] = {}
    for name in ("read_all_bytes", "read_disk_bytes"):
        rows = np.flatnonzero(mine & (process[name] >= 0))
        if len(rows):
            pids = process["pid"][rows]
            found[name] = sum(
                _grown(process["t_ns"], process[name], rows[pids == pid], role, begin_ns, end_ns)
                for pid in np.unique(pids)
            )
    if not found:
        return None
    disk = found.get("read_disk_bytes")
    return Reads(max(found.values()), disk)


def whole_epochs(loader: LoaderRun) -> list[tuple[int, int, int]]:
    """(epoch, begin, end) of the epochs that ran to their end, times in ns."""
    epochs = loader.epochs
    return [
        (int(number), int(begin), int(end))
        for number, begin, end, how in zip(
            epochs["epoch"], epochs["t_iter_ns"], epochs["t_end_ns"], epochs["how"], strict=True
        )
        if how == 1 and 0 <= begin < end
    ]


def _grown(
    t_ns: npt.NDArray[np.int64],
    values: npt.NDArray[np.int64],
    rows: Rows,
    role: int,
    begin: int | None,
    end: int | None,
) -> float:
    times = t_ns[rows]
    counted = values[rows].astype(np.float64)
    # A worker read all it counted; a training process may have read before its loader began.
    before = 0.0 if role else float(counted[0])
    if begin is not None and times[0] <= begin:
        before = float(np.interp(begin, times, counted))
    if end is None:
        return max(0.0, float(counted[-1]) - before)
    if times[0] > end or (begin is not None and times[-1] < begin):
        return 0.0
    return max(0.0, float(np.interp(end, times, counted)) - before)
