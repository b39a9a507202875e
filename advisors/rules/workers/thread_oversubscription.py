"""Library threads inside workers that fight for the CPUs.

What it looks for
    Worker processes that use at least 0.05 cores and 30 % more than their own work does
    (EXTRA_CORES, EXTRA_RATIO), with more threads than a worker needs (USUAL_THREADS), while the
    CPUs are all in use. OpenCV, NumPy's BLAS, numba and others start a thread a core in every
    worker.

Why it matters
    Eight workers with eight threads each are 64 threads on eight CPUs. They wait for each other in
    busy loops and in the kernel: workers' work takes longer than with one thread each.

What to change
    Limit the libraries to one thread in worker_init_fn (and in the environment, before they are
    imported). Where the data set's own code or its worker_init_fn sets the number, that line has to
    go: it would undo the limit.

When not to
    With fewer workers than CPUs, where a library's threads use cores that would stand idle. torch
    itself already uses one thread in a worker; set_num_threads in the training process would slow
    the training.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from ....profiler.base.metadata import clean
from ...case.advice import Outcome
from ...case.case import Case
from ...case.code_text import Source
from ...case.evidence import Cores, contended, cores, start_method, worker_rows
from ...code.loader_code import dataset_class, loader_code
from ...code.loader_form import arguments_of, form_of
from ...code.template import whole
from ...schema.figures import count, figure, percent

NAME = "thread-oversubscription"
KIND = "speed"
EFFORT = "a few lines"

# A forked worker has three threads of its own: its loop, its queue's feeder, and torch's. A spawned
# one imports NumPy anew, whose BLAS starts its threads then, used or not: at least one more.
USUAL_THREADS = {"fork": 3, "spawn": 4, "forkserver": 4}
# CPU that the process uses beside fetching, collating and packing: below this it may be anything.
EXTRA_CORES = 0.05
EXTRA_RATIO = 1.3
# docs/causes.md, "Too many library threads": with one thread each, 0.232 s became 0.213 s. What
# extra threads burn in waiting for each other is at most all they use; at least this part, on busy
# CPUs.
LEAST_GAIN = 0.92
WASTED = 1 / 3

_SETS_THREADS = re.compile(
    r"\b(?:set_num_threads|setNumThreads|threadpool_limits|set_num_interop_threads)\(\s*(?:\w+\s*=\s*)?(?P<number>[^),]*)"
)


def examine(case: Case) -> Iterator[Outcome]:
    if case.num_workers < 1 or case.whatif is None or case.cpus is None:
        return
    used = cores(case)
    own = own_cores(case)
    threads = _threads(case)
    usual = USUAL_THREADS.get(start_method(case), 4)
    if used is None or own is None or threads is None or threads <= usual:
        return
    extra = used.worker - own
    if extra < EXTRA_CORES or used.worker < EXTRA_RATIO * own or not contended(case):
        return
    # The extra threads' work is not lost if it moves into the fetching thread, but waiting for each
    # other is.
    best = max(0.3, own / used.worker)
    worst = min(LEAST_GAIN, 1 - WASTED * extra / used.worker)
    own_init = arguments_of(case, form_of(case)).get("worker_init_fn")
    caveat = "It calls your own worker_init_fn as before." if own_init is not None else None
    code = whole(
        "threads",
        OWN_INIT=own_init or "",
        LOADER=loader_code(case, worker_init_fn=Source("one_thread")),
        DATASET=dataset_class(case, "your own"),
    )
    setting = list(_lines_that_set_threads(case))
    if setting:
        code = (
            "# By hand: leave out what sets the number of threads at every sample, or give it 1\n"
            + "".join(f"# in {owner}:\n#     {line}\n" for owner, line in setting)
        )
        caveat = "A worker_init_fn would not help: these lines run after it."
    yield case.change(code=code, fetch=(best, worst)).advise(
        title="Give each worker one library thread",
        why=f"A worker has {count(threads)} threads and uses {figure(used.worker)} cores, "
        f"{figure(extra)} of them not in its own threads, and the {figure(case.cpus)} CPUs are all "
        "in use: the threads fight for them.",
        evidence=_evidence(case, used, own, threads),
        caveat=caveat,
    )


def _lines_that_set_threads(case: Case) -> Iterator[tuple[str, str]]:
    """(where, line) of each line of the recorded access methods that asks for several threads, or
    for a number that is only known when it runs."""
    seen = case.inspection
    methods = [
        (f"{part.name}.{name}", lines)
        for part in seen.parts
        for name, lines in (
            ("__getitem__", part.getitem),
            ("__getitems__", part.getitems),
            ("__iter__", part.iter),
        )
    ]
    methods += [(part.name, part.call) for part in (seen.collate,) if part is not None]
    for owner, lines in methods:
        for line in lines:
            found = _SETS_THREADS.search(line.partition("#")[0])
            if found is not None and found["number"] not in ("0", "1"):
                yield clean(owner, 80), clean(line.strip(), 100)


def own_cores(case: Case) -> float | None:
    """CPU that a worker's own threads use for fetch, collate and pack, in cores, mean over the
    workers; of pack only the wall time is known, which is no less."""
    fetch = case.share("fetch_cpu")
    if fetch is None:
        return None
    return (
        fetch + (case.share("collate_cpu") or 0.0) + (case.share("pack") or 0.0)
    ) / case.num_workers


def _threads(case: Case) -> float | None:
    """The usual number of threads of a worker once it is at work: the median of each one's
    maximum."""
    if case.host is None:
        return None
    values = case.host.process["threads"]
    peaks = [values[rows].max() for rows in worker_rows(case, case.host.process)]
    peaks = [int(peak) for peak in peaks if peak > 0]
    return float(np.median(peaks)) if peaks else None


def _evidence(case: Case, used: Cores, own: float, threads: float) -> dict[str, str]:
    found = {
        "threads a worker": count(threads),
        "CPU a worker": f"{figure(used.worker)} cores",
        "of it, its own threads": f"{figure(own)} cores",
        "all workers": f"{figure(used.workers)} cores",
        "training process": f"{figure(used.main)} cores",
        "effective CPUs": f"{figure(case.cpus or 0)} cores",
    }
    if used.system_share is not None:
        found["time in the kernel"] = percent(used.system_share)
    return found
