"""Workers whose memory grows: copy-on-write, or a cache in every worker.

What it looks for
    Memory that only one worker holds (USS) rising by more than 1 MB per minute (LEAST_SLOPE) and
    more than 50 MB in all (LEAST_GROWTH), nearly without a fall (MONOTONE), over the second half of
    that worker's life; without a long list of Python objects, only of those that live for at least
    30 s (WARM_S).

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

from typing import NamedTuple

import numpy as np

from ....profiler.base.arrays import Rows
from ....profiler.store.inspection import Part
from ....profiler.store.lanes.columns import Columns
from ...case.advice import Outcomes, Unmeasured
from ...case.case import Case
from ...case.fetching import room_of
from ...case.workers import worker_rows
from ...code.inputs import heavy_attributes
from ...code.loader_code import loader_code
from ...code.template import code_from
from ...schema.evidence import count, size
from ...schema.figures import duration
from ...stage_model.measured import measured

KIND = "safety"
NEEDS = "workers"

LEAST_SLOPE = 1_000_000 / 60  # bytes a second: what fills 16 GB in eleven days
LEAST_GROWTH = 50_000_000
MONOTONE = 0.8  # of the steps between samples do not fall
LEAST_SAMPLES = 4
WARM_S = 30.0  # caches and allocators grow for so long where no list explains it
LONG = 100_000
HEAVY_BYTES = 10_000_000


class Growth(NamedTuple):
    """Of a worker: bytes a second, bytes in all, bytes at the end, seconds; seconds it lived."""

    slope: float
    grown: float
    last: float
    seconds: float
    lived: float


def examine(case: Case) -> Outcomes:
    if case.host is None:
        yield Unmeasured("no system sampler ran, so the workers' memory was not measured")
        return
    process = case.host.process
    found = [growth for rows in worker_rows(case) if (growth := _growth(process, rows)) is not None]
    if not found:
        return
    # Workers started anew each epoch grow one after another: no more than exist at a time.
    worst, workers = max(found), min(len(found), case.num_workers)
    room, where = room_of(case)
    heavy = heavy_attributes(case.dataset or Part(), HEAVY_BYTES, LONG)
    lists = [held for held in heavy if held.attribute.kind not in ("ndarray", "dataframe")]
    if not lists and max(each.lived for each in found) < WARM_S:
        return
    cause = "No long Python list was found in the data set: look for a cache or for kept tensors."
    if lists:
        first = lists[0].attribute
        cause = (
            f"The data set keeps {count(first.length or 0)} Python objects in {first.name}. Each "
            "worker that reads them copies their memory, by writing reference counts."
        )
    if room:
        left = duration(room / (worst.slope * workers))
        cause += f" At this rate {size(room)} of {where} are used up in {left}."
    lines = [f"{held.code} = PackedList({held.code})" for held in lists] or [
        "# for each long list of Python objects that the data set holds: dataset.items = "
        "PackedList(dataset.items)"
    ]
    then = "\n".join([*lines, loader_code(case), ""])
    yield case.change(code=code_from("packed_list", "PackedList", then=then)).advise(
        "Stop the workers' memory from growing",
        f"Memory that only one worker holds grows by {size(worst.slope * 60)} per minute in "
        f"{workers} worker{'s' * (workers > 1)}. {cause}",
        {
            "growth of a worker": size(worst.slope * 60, "per minute"),
            "grown": size(worst.grown, f"in {duration(worst.seconds)}"),
            "a worker now": size(worst.last),
            "workers that grow": count(workers),
            where: size(room or None),
            **{
                f"{held.owner}.{held.attribute.name}": count(
                    held.attribute.length or 0, f"items ({held.attribute.kind})"
                )
                for held in lists
            },
        },
        caveat="Copies of a list stop at its size per worker. If the growth goes on beyond that, "
        "it is a cache or a leak.",
    )


def _growth(process: Columns, rows: Rows) -> Growth | None:
    """By USS. That is costly to read and may be known twice only: then RSS has to grow as well.
    Over the second half, or all of it where that would be too few samples."""
    lived = float(np.ptp(process["t_ns"][rows])) / 1e9
    uss, name = measured(process["uss_bytes"][rows]), "uss_bytes"
    if len(uss) < LEAST_SAMPLES:
        if len(uss) < 2 or uss[-1] - uss[0] < LEAST_GROWTH:
            return None
        name = "rss_bytes"
    rows = rows[process[name][rows] >= 0]
    rows = rows[len(rows) // 2 if len(rows) >= 2 * LEAST_SAMPLES else 0 :]
    if len(rows) < LEAST_SAMPLES:
        return None
    t, used = process["t_ns"][rows] / 1e9, process[name][rows].astype(np.float64)
    half = len(used) // 2
    # Medians, which a few wild samples do not move.
    more, later = (np.median(each[half:]) - np.median(each[:half]) for each in (used, t))
    found = Growth(more / max(later, 1e-9), used[-1] - used[0], used[-1], t[-1] - t[0], lived)
    rising = np.mean(np.diff(used) >= 0) >= MONOTONE
    grows = rising and found.slope >= LEAST_SLOPE and found.grown >= LEAST_GROWTH
    return found if grows else None
