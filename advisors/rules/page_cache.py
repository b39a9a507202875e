"""The data set does not fit the page cache: every epoch reads it from the disk again.

What it looks for
    Epochs after the first that read at least 70 % (AGAIN) of what the first read from the storage, at least 64 MB
    (LEAST_BYTES), while fetching waits for more than 30 % of its time (LEAST_IDLE) and is a main cause of waiting.

Why it matters
    What was read once stays in memory as long as there is room: a data set that fits is read from the disk only in the
    first epoch. One that does not fit is read from the disk in each, and since epochs go through it from end to end,
    even a part that would fit is thrown out before it is asked for again. Reported gains of caching reach five times.

What to change
    Make it smaller (8-bit instead of 32-bit values, a smaller picture size, a better encoding), copy it to a faster
    disk near the machine, or give the container more memory: the page cache counts against its limit.

When not to
    One cold epoch proves nothing, so this rule is silent until a second one has run to its end. Faster reading does not
    help where decoding is what takes the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from ..case import Advice, Case, Outcome, Unmeasured
from ..disk_reads import loader_reads
from ..fetching import MAIN_PART, fetch_idle_share, fetch_share
from ..words import percent, size, us

NAME = "page-cache"
KIND = "speed"

# CAUSES.md row 4: "epoch-2 read_bytes ≈ epoch 1".
AGAIN = 0.7
LEAST_BYTES = 64e6
LEAST_IDLE = 0.3
# Of the waiting, what reading from memory instead of the disk takes away: the rest is copying and other waiting.
STILL_WAITS = 0.7


def examine(case: Case) -> Iterator[Outcome]:
    idle = fetch_idle_share(case)
    if case.whatif is None or idle is None or idle < LEAST_IDLE or fetch_share(case) < MAIN_PART:
        return
    epochs = case.loader.epochs
    whole = [
        (int(begin), int(end))
        for begin, end, how in zip(epochs["t_iter_ns"], epochs["t_end_ns"], epochs["how"], strict=True)
        if how == 1 and 0 <= begin < end
    ]
    if len(whole) < 2:
        return
    if case.host is None or not case.host.process.measured("read_disk_bytes"):
        yield Unmeasured(
            f"fetching waits {percent(idle)} of its time, but what it reads from the disk was not measured: record "
            "with the system sampler on"
        )
        return
    read = []
    for begin, end in whole:
        reads = loader_reads(case, begin, end)
        read.append(reads.disk_bytes or 0.0 if reads is not None else 0.0)
    first, later = read[0], median(read[1:])
    if first < LEAST_BYTES or later < AGAIN * first:
        return
    limit = case.system.cgroup_mem_limit_bytes or case.system.mem_total_bytes
    evidence = {
        "read from the disk in the first epoch": size(first),
        "in later epochs": size(later),
        "fetching waits": percent(idle),
        "fetch a batch": us(case.mean_us("fetch") or 0.0),
    }
    if limit is not None:
        evidence["memory"] = size(limit)
    yield Advice(
        title="Keep the data where it can be read again without the disk",
        why=(
            f"Later epochs read {percent(later / first)} of what the first read from the disk: the page cache does not "
            f"hold the data, and fetching waits {percent(idle)} of its time."
        ),
        evidence=evidence,
        predicted=case.whatif.predict(fetch=(1 - idle, 1 - idle * (1 - STILL_WAITS))),
        code=_CODE,
        caveat="A range for data that fits in memory afterwards; a faster disk lies below it.",
    )


_CODE = """\
# one of these, the first that is possible:
# 1. store smaller values, once:  np.save("data.npy", (images * 255).round().astype(np.uint8))
#    and divide by 255 on the device, after the copy
# 2. copy the data to a disk inside this machine before training, and read it from there
# 3. give the container more memory: the page cache counts against its limit
"""
