"""What the processes of one loader read in a time, from the samples of the system sampler.

A worker's counters begin with it. The training process's counters include those of ended workers,
so with workers only the workers are counted. Samples are about a second apart, so the reads of an
epoch are right within one sample.
"""

from math import inf

import numpy as np

from ...profiler.store.run.run import LoaderRun, SystemRun
from ..stage_model.process_rows import process_rows


def reads_of(
    system: SystemRun | None, loader: LoaderRun, begin_ns: float = -inf, end_ns: float = inf
) -> dict[str, float]:
    """Bytes read between two times, by default in the whole run: `read_bytes` by system calls, page
    cache included, and `disk_bytes`, the part that came from storage. Each only where a sampler of
    the loader's host counted it."""
    found: dict[str, float] = {}
    if system is None:
        return found
    lane, workers = system.process, loader.num_workers
    every = process_rows(lane, loader, loader, in_main=not workers)
    for name, column in (("read_bytes", "read_all_bytes"), ("disk_bytes", "read_disk_bytes")):
        for rows in (each[lane[column][each] >= 0] for each in every):
            if not len(rows):
                continue
            times, counted = lane["t_ns"][rows], lane[column][rows]
            # A training process may have read before its loader began; a worker has not.
            first = 0.0 if workers else float(counted[0])
            before = np.interp(begin_ns, times, counted, left=first)
            after = np.interp(end_ns, times, counted, left=before)
            found[name] = found.get(name, 0.0) + max(0.0, float(after - before))
    return {**found, "read_bytes": max(found.values())} if found else found


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
