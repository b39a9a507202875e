"""The data set does not fit the page cache: every epoch reads it from the disk again.

What it looks for
    Epochs after the first that read at least 70 % (AGAIN) of what the first read from the storage,
    at least 64 MB (LEAST_BYTES), while fetching waits for more than 30 % of its time (LEAST_IDLE)
    and is a main cause of waiting. In the first epoch: a data set larger than the memory that the
    page cache may use (within the container's limit, less what the processes hold), if nearly all
    its bytes come from the disk.

Why it matters
    What was read once stays in memory as long as there is room: a data set that fits is read from
    the disk only in the first epoch. One that does not fit is read from the disk in each. Since
    epochs go through it from end to end, even a part that would fit is evicted before it is asked
    for again. Reported gains of caching reach five times.

What to change
    Make it smaller (8-bit instead of 32-bit values, a smaller picture size, a better encoding),
    copy it to a faster disk near the machine, or give the container more memory: the page cache
    counts against its limit.

When not to
    One cold epoch proves nothing if the data set fits memory: the report then says so, and advises
    nothing. Faster reading does not help if decoding takes the time.
"""

from __future__ import annotations

from statistics import median

from ...case.advice import Outcomes, Unmeasured
from ...case.case import Case
from ...case.fetching import (
    MAIN_PART,
    core_wait_share,
    fetch_figures,
    fetch_idle_share,
    fetch_share,
)
from ...schema.evidence import Evidence, percent, size
from ...schema.report_model import StorageSummary
from ...storage.disk_reads import loader_reads, whole_epochs
from ...storage.files import length_of

EFFORT = "a conversion"
NEEDS = "prediction"

# docs/causes.md, "A data set larger than the page cache".
AGAIN = 0.7
LEAST_BYTES = 64e6
LEAST_IDLE = 0.3
# Of the waiting, what may stay once the bytes come from memory: not all of it need have been for
# the disk.
STILL_WAITS = 0.4
# A data set of less than this part of the memory fits it, whatever else comes and goes.
FITS = 0.8
# Later epochs that read less than this of the first from the disk come from memory.
WARM = 0.2

_CODE = """\
# one of these, the first that is possible:
# 1. store smaller values, once:  np.save("data.npy", (images * 255).round().astype(np.uint8))
#    and divide by 255 on the device, after the copy
# 2. copy the data to a disk inside this machine before training, and read it from there
# 3. give the container more memory: the page cache counts against its limit
"""


def examine(case: Case) -> Outcomes:
    idle = fetch_idle_share(case)
    if idle is None or fetch_share(case) < MAIN_PART:
        return
    # Of what fetching does while it has a core, the part that waits for files and the like.
    idle = min(1.0, idle / max(0.05, 1 - core_wait_share(case)))
    if idle < LEAST_IDLE:
        return
    read = _disk_bytes(case)
    if read is None:
        if len(whole_epochs(case.loader)) >= 2:
            yield Unmeasured(
                f"fetching waits {percent(idle)} of its time, but what it reads from the disk was "
                "not measured: record with the system sampler on"
            )
    elif len(read) >= 2:
        yield from _epochs(case, idle, read[0], median(read[1:]))
    elif case.report.storage is not None:
        yield from _first(case, idle, case.report.storage)


def _disk_bytes(case: Case) -> list[float] | None:
    """What each whole epoch read from the disk: by the sampler's counters, else by the looks; None:
    not measured."""
    whole = whole_epochs(case.loader)
    if case.host is not None and case.host.process.measured("read_disk_bytes"):
        reads = [loader_reads(case, begin, end) for _, begin, end in whole]
        return [found.disk_bytes or 0.0 if found is not None else 0.0 for found in reads]
    length, storage = length_of(case.loader), case.report.storage
    known = {
        each.epoch: each.disk_bytes
        for each in (storage.epochs if storage is not None else ())
        if each.disk_bytes is not None
    }
    if length is None or not known:
        return None
    ended = {number for number, _, _ in whole}
    return [nbytes * length for epoch, nbytes in known.items() if epoch in ended]


def _epochs(case: Case, idle: float, first: float, later: float) -> Outcomes:
    evidence: Evidence = {
        "read from the disk in the first epoch": size(first),
        "in later epochs": size(later),
        **_figures(case, idle),
    }
    if first < LEAST_BYTES:
        return
    part = percent(later / first)
    if later >= AGAIN * first:
        yield from _advice(
            case,
            idle,
            f"Later epochs read {part} of what the first read from the disk: the page cache does "
            "not hold the data.",
            evidence,
        )
    elif later < WARM * first:
        yield from _only_first(
            case,
            f"Only the first epoch reads from the disk: later ones read {part} of its bytes, the "
            "rest comes from the page cache.",
            evidence,
        )


def _first(case: Case, idle: float, storage: StorageSummary) -> Outcomes:
    """Before a second epoch has ended, sizes tell what it will be."""
    total, memory, disk = storage.dataset_bytes, storage.memory_bytes, storage.disk_bytes_per_sample
    length = length_of(case.loader)
    if total is None or memory is None or disk is None or not length or total < LEAST_BYTES:
        return
    if disk < AGAIN * total / length:
        return  # much of it comes from memory already
    evidence: Evidence = {"read from the disk per sample": size(disk), **_figures(case, idle)}
    if total > memory:
        yield from _advice(
            case,
            idle,
            f"The data set takes about {size(total)} and the page cache has {size(memory)}: what "
            "this epoch reads from the disk will be evicted before the next one asks for it.",
            evidence,
        )
    elif total < FITS * memory:
        yield from _only_first(
            case,
            "Only the first epoch reads from the disk: the next ones will not, since the "
            f"{size(total)} of the data set fit the {size(memory)} that the page cache may use.",
            evidence,
        )


def _advice(case: Case, idle: float, why: str, evidence: Evidence) -> Outcomes:
    yield case.change(code=_CODE, fetch=(1 - idle, 1 - idle * (1 - STILL_WAITS))).advise(
        "Keep the data where it can be read again without the disk",
        f"{why} Fetching waits {percent(idle)} of its time.",
        evidence,
        caveat="A range for data that fits in memory afterwards; a faster disk lies below it.",
    )


def _only_first(case: Case, why: str, evidence: Evidence) -> Outcomes:
    change = case.change(code="# nothing to change: the data set stays in memory\n")
    title = "Nothing needs to be done about the page cache"
    yield change.would_not_help(why, evidence, title=title)


def _figures(case: Case, idle: float) -> Evidence:
    storage = case.report.storage
    total, memory = (
        (storage.dataset_bytes, storage.memory_bytes) if storage is not None else (None, None)
    )
    limit = case.system.cgroup_mem_limit_bytes or case.system.mem_total_bytes
    return {
        **fetch_figures(case),
        "fetching waits": percent(idle),
        "the data set, about": size(total),
        "memory for the page cache": size(memory),
        "memory": size(limit) if memory is None else None,
    }
