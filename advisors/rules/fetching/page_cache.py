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
    One cold epoch proves nothing if the data set fits memory. Faster reading does not help if
    decoding takes the time.
"""

from statistics import median

from ...case.advice import Outcomes, Unmeasured
from ...case.case import Case
from ...case.fetching import MAIN_PART, core_wait_share, fetch_idle_share, fetch_share
from ...schema.evidence import Evidence, percent, size, us
from ...storage.disk_reads import reads_of, whole_epochs
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

_CODE = """\
# one of these, the first that is possible:
# 1. store smaller values, once:  np.save("data.npy", (images * 255).round().astype(np.uint8))
#    and divide by 255 on the device, after the copy
# 2. copy the data to a disk inside this machine before training, and read it from there
# 3. give the container more memory: the page cache counts against its limit
"""


def examine(case: Case) -> Outcomes:
    idle, whole = fetch_idle_share(case), whole_epochs(case.loader)
    if idle is None or fetch_share(case) < MAIN_PART:
        return
    # Of what fetching does while it has a core, the part that waits for files and the like.
    idle = min(1.0, idle / max(0.05, 1 - core_wait_share(case)))
    if idle < LEAST_IDLE:
        return
    if len(whole) < 2:
        found = _first(case)
    elif case.host is not None and case.host.process.measured("read_disk_bytes"):
        reads = (reads_of(case.host, case.loader, begin, end) for _, begin, end in whole)
        found = _epochs([each.get("disk_bytes", 0.0) for each in reads])
    else:
        yield Unmeasured(
            f"fetching waits {percent(idle)} of its time, but what it reads from the disk was "
            "not measured: record with the system sampler on"
        )
        return
    if found is None:
        return
    why, evidence = found
    yield case.change(code=_CODE, fetch=(1 - idle, 1 - idle * (1 - STILL_WAITS))).advise(
        "Keep the data where it can be read again without the disk",
        f"{why} Fetching waits {percent(idle)} of its time.",
        {**evidence, **_figures(case, idle)},
        caveat="A range for data that fits in memory afterwards; a faster disk lies below it.",
    )


def _epochs(read: list[float]) -> tuple[str, Evidence] | None:
    first, later = read[0], median(read[1:])
    if first < LEAST_BYTES or later < AGAIN * first:
        return None
    why = (
        f"Later epochs read {percent(later / first)} of what the first read from the disk: the "
        "page cache does not hold the data."
    )
    return why, {
        "read from the disk in the first epoch": size(first),
        "in later epochs": size(later),
    }


def _first(case: Case) -> tuple[str, Evidence] | None:
    """Before a second epoch has ended, sizes show what it will be."""
    storage, length = case.report.storage, length_of(case.loader)
    if storage is None or not length:
        return None
    total, memory, disk = storage.dataset_bytes, storage.memory_bytes, storage.disk_bytes_per_sample
    if total is None or memory is None or disk is None or total < LEAST_BYTES:
        return None
    if disk < AGAIN * total / length or total <= memory:
        return None  # much of it comes from memory already, or will
    why = (
        f"The data set takes about {size(total)} and the page cache has {size(memory)}: what this "
        "epoch reads from the disk will be evicted before the next one asks for it."
    )
    return why, {"read from the disk per sample": size(disk)}


def _figures(case: Case, idle: float) -> Evidence:
    storage = case.report.storage
    whole, memory = (storage.dataset_bytes, storage.memory_bytes) if storage else (None, None)
    limit = case.system.cgroup_mem_limit_bytes or case.system.mem_total_bytes
    return {
        "fetch a batch": us(case.mean_us("fetch")),
        "fetching waits": percent(idle),
        "the data set, about": size(whole),
        "memory for the page cache": size(memory),
        "memory": size(limit) if memory is None else None,
    }
