"""Library threads inside workers that compete for the CPUs.

What it looks for
    Worker processes that use at least 0.05 cores and 30 % more than their own work does
    (EXTRA_CORES, EXTRA_RATIO), with more threads than a worker needs (USUAL_THREADS), while the
    CPUs are all in use. OpenCV, NumPy's BLAS, numba and others start one thread per core in every
    worker.

Why it matters
    Eight workers with eight threads each are 64 threads on eight CPUs. They wait for each other in
    busy loops and in the kernel. The work takes longer than with one thread each.

What to change
    Limit the libraries to one thread in worker_init_fn, and in the environment before they are
    imported. If the data set's own code or its worker_init_fn sets the number, that line has to go:
    it would undo the limit.

When not to
    With fewer workers than CPUs, a library's threads use cores that would be idle. torch itself
    already uses one thread in a worker; set_num_threads in the training process would slow the
    training.
"""

import numpy as np

from ...case.advice import Outcomes
from ...case.case import Case
from ...case.code_text import Source
from ...case.fetching import MAIN_PART, handed_over
from ...case.workers import contended, cores, start_method, worker_rows
from ...code.loader_code import loader_code
from ...code.loader_form import arguments_of, form_of
from ...code.template import whole
from ...schema.evidence import count, figure, in_cores

NEEDS = "prediction workers"

# A forked worker has three threads of its own: its loop, its queue's feeder, and torch's. A spawned
# one imports NumPy anew, whose BLAS starts its threads then, used or not: at least one more.
USUAL_THREADS = {"fork": 3, "spawn": 4, "forkserver": 4}
# CPU that the process uses besides fetching, collating and packing: below this it may be anything.
EXTRA_CORES = 0.05
EXTRA_RATIO = 1.3
# docs/causes.md, "Too many library threads": with one thread each, 0.232 s became 0.213 s. What
# extra threads burn in waiting for each other is at most all they use; at least this part, on busy
# CPUs.
LEAST_GAIN = 0.92
WASTED = 1 / 3


def examine(case: Case) -> Outcomes:
    used, own = cores(case), case.share("fetch_cpu", "collate_cpu", "pack")
    threads = _threads(case)
    if used is None or own is None or case.cpus is None or not contended(case):
        return
    if handed_over(case) >= MAIN_PART:
        return  # they do the work, and nobody competes with them in their worker
    if threads <= USUAL_THREADS.get(start_method(case), 4):
        return
    # What a worker's own threads use, mean over the workers. Pack counts with its wall time, which
    # is no less.
    own /= case.num_workers
    extra = used.worker - own
    if extra < EXTRA_CORES or used.worker < EXTRA_RATIO * own:
        return
    # The extra threads' work is not lost if it moves into the fetching thread; their waiting for
    # each other is.
    best = max(0.3, own / used.worker)
    worst = min(LEAST_GAIN, 1 - WASTED * extra / used.worker)
    own_init = arguments_of(case, form_of(case)).get("worker_init_fn")
    code = whole(
        "threads",
        OWN_INIT=own_init or "",
        LOADER=loader_code(case, worker_init_fn=Source("one_thread")),
    )
    yield case.change(code=code, fetch=(best, worst)).advise(
        "Give each worker one library thread",
        f"A worker has {count(threads)} threads and uses {figure(used.worker)} cores, "
        f"{figure(extra)} of them not in its own threads. The {figure(case.cpus)} CPUs are all in "
        "use, so the threads compete for them.",
        {
            "threads per worker": count(threads),
            "CPU of a worker": in_cores(used.worker),
            "effective CPUs": in_cores(case.cpus),
        },
        caveat="A line of the data set or of worker_init_fn that sets the number of threads itself "
        "has to go: it would undo the limit.",
    )


def _threads(case: Case) -> float:
    """The usual number of threads of a worker at work: the median of each one's maximum."""
    peaks = [case.host.process["threads"][rows].max() for rows in worker_rows(case) if case.host]
    return float(np.median([peak for peak in peaks if peak > 0] or [0]))
