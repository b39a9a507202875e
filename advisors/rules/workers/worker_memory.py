"""Workers whose memory grows: copy-on-write, or a cache in every worker.

What it looks for
    Memory that only one worker holds (USS) rising by more than 1 MB per minute (LEAST_SLOPE) and
    more than 50 MB in all (LEAST_GROWTH), nearly without a fall (MONOTONE), over the second half of
    that worker's life.

Why it matters
    A forked worker shares the parent's memory until it writes to it, and reading a Python object
    writes its reference count: bit by bit each worker copies the whole list of file names. A cache
    inside the data set grows in every worker separately. Training then ends by the machine's
    out-of-memory killer, hours into the run.

What to change
    Keep long lists in arrays or in one packed tensor, whose items are not Python objects. Bound
    caches.

When not to
    Growth that ends when every sample was seen once only costs num_workers copies. RSS counts
    shared memory for every process that uses it and shows neither: look at USS or PSS.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...case.advice import Outcomes, Unmeasured
from ...case.case import Case
from ...case.workers import worker_rows
from ...code.inputs import heavy_attributes
from ...code.loader_code import loader_code
from ...code.template import code_from
from ...schema.evidence import Evidence, count, size
from ...schema.figures import duration

KIND = "safety"
EFFORT = "a few lines"
NEEDS = "workers"

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
    """The worker that grows most: its slope in bytes per second, growth and last value in bytes."""

    slope: float
    grown: float
    last: float
    seconds: float
    workers: int = 1  # workers that grow like it


def examine(case: Case) -> Outcomes:
    if case.host is None:
        yield Unmeasured("no system sampler ran, so the workers' memory was not measured")
        return
    found = growth(case)
    if found is None:
        return
    room, where = _room(case)
    heavy = heavy_attributes(case.dataset, HEAVY_BYTES, LONG) if case.dataset is not None else []
    lists = [held for held in heavy if held.attribute.kind not in ("ndarray", "dataframe")]
    cause = "No long Python list was found in the data set: look for a cache or for kept tensors."
    if lists:
        first = lists[0].attribute
        cause = (
            f"The data set keeps {count(first.length or 0)} Python objects in {first.name}. Each "
            "worker that reads them copies their memory, by writing reference counts."
        )
    if room:
        left = duration(room / (found.slope * found.workers))
        cause += f" At this rate {size(room)} of {where} are used up in {left}."
    evidence: Evidence = {
        "growth of a worker": size(found.slope * 60, "per minute"),
        "grown": size(found.grown, f"in {duration(found.seconds)}"),
        "a worker now": size(found.last),
        "workers that grow": count(found.workers),
        **({where: size(room)} if room else {}),
    }
    for held in lists:
        items = count(held.attribute.length or 0, f"items ({held.attribute.kind})")
        evidence = {**evidence, f"{held.owner}.{held.attribute.name}": items}
    lines = [f"{held.code} = PackedList({held.code})" for held in lists] or [
        "# for each long list of Python objects that the data set holds: dataset.items = "
        "PackedList(dataset.items)"
    ]
    then = "\n".join([*lines, loader_code(case), ""])
    yield case.change(code=code_from("packed_list", "PackedList", then=then)).advise(
        "Stop the workers' memory from growing",
        f"Memory that only one worker holds grows by {size(found.slope * 60)} per minute in "
        f"{found.workers} worker{'s' * (found.workers > 1)}. {cause}",
        evidence,
        caveat="Copies of a list stop at its size per worker. If the growth goes on beyond that, "
        "it is a cache or a leak.",
    )


def growth(case: Case) -> Growth | None:
    """The clearest growth among the workers of this loader, None if there is none."""
    found = [one for rows in worker_rows(case) if (one := _growth_of(case, rows)) is not None]
    if not found:
        return None
    # Workers started anew each epoch grow one after another: no more than exist at a time.
    worst = max(found, key=lambda one: one.slope)
    return replace(worst, workers=min(len(found), case.num_workers))


def _growth_of(case: Case, samples: npt.NDArray[np.intp]) -> Growth | None:
    """By USS. That is costly to read and may be known twice only: then RSS has to grow as well."""
    assert case.host is not None
    process = case.host.process
    uss = process["uss_bytes"][samples]
    known = uss[uss >= 0]
    name = "uss_bytes"
    if len(known) < LEAST_SAMPLES:
        if len(known) < 2 or known[-1] - known[0] < LEAST_GROWTH:
            return None
        name = "rss_bytes"
    rows = samples[process[name][samples] >= 0]
    return _growth(process["t_ns"][rows], process[name][rows])


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
    return Growth(slope, grown, float(used[-1]), float(t[-1] - t[0]))


def theil_sen(t: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> float:
    """The median of the slopes between all pairs: a few wild samples do not move it. Zero for fewer
    than two."""
    i, j = np.triu_indices(len(t), 1)
    span = t[j] - t[i]
    distinct = span > 0
    slopes = (values[j] - values[i])[distinct] / span[distinct]
    return float(np.median(slopes)) if len(slopes) else 0.0


def _room(case: Case) -> tuple[float, str]:
    """What is left: of the container's limit if that is below the machine's memory, else of the
    machine's memory."""
    limit, peak = case.system.cgroup_mem_limit_bytes, case.system.cgroup_mem_peak_bytes
    left = case.system.mem_available_min_bytes
    if limit and peak is not None and (left is None or limit - peak < left):
        return max(1.0, float(limit - peak)), "the container's memory"
    return float(left or 0), "the machine's memory"
