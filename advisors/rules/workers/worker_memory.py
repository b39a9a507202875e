"""Workers whose memory grows: copy-on-write, or a cache in every worker.

What it looks for
    Memory that only one worker holds (USS) rising by more than 1 MB a minute (LEAST_SLOPE) and more
    than 50 MB in all (LEAST_GROWTH), nearly without a fall (MONOTONE), over the second half of that
    worker's life.

Why it matters
    A forked worker shares the parent's memory until it writes to it, and reading a Python object
    writes its reference count: bit by bit each worker copies the whole list of file names. A cache
    inside the data set grows in every worker for itself. Training then ends by the machine's
    out-of-memory killer, hours into the run.

What to change
    Keep long lists in arrays or in one packed tensor, whose items are not Python objects; bound
    caches.

When not to
    Growth that ends when every sample was seen once is only a cost of num_workers copies. RSS
    counts shared memory for every process that uses it and shows neither: look at USS or PSS.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...case.advice import Outcome, Unmeasured
from ...case.case import Case
from ...case.evidence import worker_rows
from ...code.inputs import Held, heavy_attributes
from ...code.loader_code import loader_code
from ...code.template import code_from
from ...schema.figures import count, size

NAME = "worker-memory"
KIND = "safety"
EFFORT = "a few lines"

LEAST_SLOPE = 1_000_000 / 60  # bytes a second: what fills 16 GB in eleven days
LEAST_GROWTH = 50_000_000
MONOTONE = 0.8  # of the steps between samples do not fall
LEAST_SAMPLES = 4
# Theil-Sen looks at all pairs; a few hundred samples give the same slope.
MOST_SAMPLES = 200
LONG = 100_000
HEAVY_BYTES = 10_000_000


@dataclass(frozen=True)
class Growth:
    """The worker that grows most: slope in bytes a second, growth and last value in bytes, over
    `seconds`."""

    slope: float
    grown: float
    last: float
    seconds: float
    workers: int  # workers that grow like it


def examine(case: Case) -> Iterator[Outcome]:
    if not case.num_workers:
        return
    if case.host is None:
        yield Unmeasured("no system sampler ran, so the workers' memory was not measured")
        return
    found = growth(case)
    if found is None:
        return
    room, where = _room(case)
    total = found.slope * found.workers
    evidence = {
        "growth a worker": f"{size(found.slope * 60)} a minute",
        "grown": f"{size(found.grown)} in {_duration(found.seconds)}",
        "a worker now": size(found.last),
        "workers that grow": count(found.workers),
    }
    ends = ""
    if room:
        evidence[where] = size(room)
        ends = f" At this rate {size(room)} of {where} are used up in {_duration(room / total)}."
    heavy = heavy_attributes(case.dataset, HEAVY_BYTES, LONG) if case.dataset is not None else []
    lists = [held for held in heavy if held.attribute.kind not in ("ndarray", "dataframe")]
    for held in lists:
        evidence[f"{held.owner}.{held.attribute.name}"] = (
            f"{count(held.attribute.length or 0)} items ({held.attribute.kind})"
        )
    cause = (
        f"The data set keeps {count(lists[0].attribute.length or 0)} Python objects in "
        f"{lists[0].attribute.name}: each worker that reads them copies their memory, by writing "
        "reference counts."
        if lists
        else "No long Python list was found in the data set: look for a cache in it, or for "
        "tensors that are kept."
    )
    yield case.change(code=_code(case, lists)).advise(
        title="Stop the workers' memory from growing",
        why=f"Memory that only one worker holds grows by {size(found.slope * 60)} a minute in "
        f"{found.workers} worker{'s' * (found.workers > 1)}. {cause}{ends}",
        evidence=evidence,
        caveat="Copies of a list end at its size a worker. If the growth goes on beyond that, it "
        "is a cache or a leak.",
    )


def growth(case: Case) -> Growth | None:
    """The clearest growth among the workers of this loader, None where there is none."""
    if case.host is None:
        return None
    process = case.host.process
    found = []
    for samples in worker_rows(case, process):
        rows = samples[process["uss_bytes"][samples] >= 0]
        one = None
        if len(rows) >= LEAST_SAMPLES:
            one = _growth(process["t_ns"][rows], process["uss_bytes"][rows])
        elif (
            len(rows) > 1
            and process["uss_bytes"][rows[-1]] - process["uss_bytes"][rows[0]] >= LEAST_GROWTH
        ):
            # USS is dear to read and may be known twice only: then RSS, read every time, has to
            # grow as well.
            rows = samples[process["rss_bytes"][samples] >= 0]
            one = _growth(process["t_ns"][rows], process["rss_bytes"][rows])
        if one is not None:
            found.append(one)
    if not found:
        return None
    worst = max(found, key=lambda one: one.slope)
    # Workers started anew each epoch grow one after another: no more than there are at a time.
    workers = min(len(found), case.num_workers)
    return Growth(worst.slope, worst.grown, worst.last, worst.seconds, workers)


def _growth(t_ns: npt.NDArray[np.int64], values: npt.NDArray[np.int64]) -> Growth | None:
    """Over the second half, or all of it where that would be too few samples."""
    half = slice(len(values) // 2 if len(values) >= 2 * LEAST_SAMPLES else 0, None)
    step = max(1, len(values[half]) // MOST_SAMPLES)
    t, used = t_ns[half].astype(np.float64)[::step] / 1e9, values[half].astype(np.float64)[::step]
    if len(t) < LEAST_SAMPLES:
        return None
    slope = theil_sen(t, used)
    grown, rising = float(used[-1] - used[0]), float(np.mean(np.diff(used) >= 0))
    if slope < LEAST_SLOPE or grown < LEAST_GROWTH or rising < MONOTONE:
        return None
    return Growth(slope, grown, float(used[-1]), float(t[-1] - t[0]), 1)


def theil_sen(t: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> float:
    """The median of the slopes between all pairs: a few wild samples do not move it. Zero for fewer
    than two."""
    i, j = np.triu_indices(len(t), 1)
    span = t[j] - t[i]
    apart = span > 0
    return float(np.median((values[j] - values[i])[apart] / span[apart])) if apart.any() else 0.0


def _room(case: Case) -> tuple[float, str]:
    """What is left: of the container's limit if it has one below the machine's memory, else of the
    machine's memory."""
    limit, peak = case.system.cgroup_mem_limit_bytes, case.system.cgroup_mem_peak_bytes
    left = case.system.mem_available_min_bytes
    if limit and peak is not None and (left is None or limit - peak < left):
        return max(1.0, float(limit - peak)), "the container's memory"
    return (float(left), "the machine's memory") if left else (0.0, "")


def _duration(seconds: float) -> str:
    for limit, scale, unit in (
        (90, 1, "seconds"),
        (90 * 60, 60, "minutes"),
        (48 * 3600, 3600, "hours"),
    ):
        if seconds < limit:
            return f"{count(seconds / scale)} {unit}"
    return f"{count(seconds / 86400)} days"


def _code(case: Case, lists: list[Held]) -> str:
    lines = [f"{held.code} = PackedList({held.code})" for held in lists] or [
        "# for each long list of Python objects that the data set holds: dataset.items = "
        "PackedList(dataset.items)"
    ]
    return code_from("packed_list", "PackedList", then="\n".join([*lines, loader_code(case), ""]))
