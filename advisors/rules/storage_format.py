"""Pack many small files into few large ones, where opening and reading them is what fetching waits for.

What it looks for
    A data set that lists files, fetching that is the main part of all waiting (MAIN_PART, 50 %), and what fetching
    does: waiting for more than 50 % of its time (FETCH_WAITS) while its processes really read bytes, or computing for
    more than 85 % (FETCH_COMPUTES: it waits less than 15 %).

Why it matters
    A file that is opened for each sample costs a search, a round trip on a network file system, and a seek. One file
    with all of them costs none of that. But where decoding is the work, a day of converting gains next to nothing: at
    most the part of fetching that waits, and that is said beforehand.

What to change
    Pack the files, as they are, into one file with an index, and read it through a memory map (the code does it); or
    into an LMDB file or tar shards.

When not to
    On a local NVMe disk reported gains are 0.92 to 1.03. Files read in parallel by enough workers hide their latency.
    Tar shards can only be read in order, and need at least as many shards as workers and ranks together.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..case import Advice, Case, Outcome, Unmeasured
from ..disk_reads import loader_reads
from ..fetching import FETCH_COMPUTES, FETCH_WAITS, MAIN_PART, fetch_idle_share, fetch_share, file_suffix, held
from ..words import dataset_class, identifier, percent, size, times, us

NAME = "storage-format"
KIND = "speed"

# Reading this much less than the batches hold, files compressed tenfold included, is no reading of samples.
LEAST_READ_OF_BATCHES = 0.02
# Some waiting stays: the bytes still have to come from the disk.
STILL_WAITS = 0.6

_PACKED = '''import io
import mmap

import numpy as np


def pack(paths, target):
    """Once: all files one after another in `target`, and where each begins in `target`.npy."""
    ends = []
    with open(target, "wb") as out:
        for path in paths:
            with open(path, "rb") as file:
                out.write(file.read())
            ends.append(out.tell())
    np.save(f"{target}.npy", np.array([0, *ends]))


class Packed:
    """The packed files, as file objects: `packed[index]` in place of `open(path, "rb")`."""

    def __init__(self, target):
        self.target, self.places, self.map = target, np.load(f"{target}.npy"), None

    def __getitem__(self, index):
        if self.map is None:  # opened where it is used: once in each worker
            with open(self.target, "rb") as file:
                self.map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return io.BytesIO(self.map[self.places[index] : self.places[index + 1]])


'''


def examine(case: Case) -> Iterator[Outcome]:
    suffix, idle = file_suffix(case), fetch_idle_share(case)
    if suffix is None or case.whatif is None or fetch_share(case) < MAIN_PART:
        return
    if case.report.verdict == "compute-bound":
        return
    if idle is None:
        yield Unmeasured("whether fetching waits for its files was not measured: no CPU time of it was recorded")
        return
    if idle < FETCH_COMPUTES:
        yield _rejected(case, idle)
        return
    reads = loader_reads(case)
    if reads is None:
        yield Unmeasured(
            f"storage is not measured yet: fetching waits {percent(idle)} of its time, for files or for a core. "
            "Record with the system sampler on to see what is read"
        )
    elif idle >= FETCH_WAITS and _really_reads(case, reads.any_bytes):
        yield _advice(case, idle, suffix, reads.any_bytes, reads.disk_bytes)


def _really_reads(case: Case, nbytes: float) -> bool:
    batch = case.report.bytes_per_batch
    made = batch * case.report.batches if batch is not None else None
    return nbytes > 0 and (made is None or nbytes >= LEAST_READ_OF_BATCHES * made)


def _rejected(case: Case, idle: float) -> Advice:
    assert case.whatif is not None
    predicted = case.whatif.predict(fetch=1 - idle)
    return Advice(
        title="Packing the files into another format would not help",
        why=(
            f"Packing them cannot gain more than {times(predicted.high)}: fetching is computing (decoding) "
            f"{percent(1 - idle)} of its time, and waits for files at most {percent(idle)}."
        ),
        evidence={"fetch a batch": us(case.mean_us("fetch") or 0.0), "fetching waits": percent(idle)},
        predicted=predicted,
        code="# keep the files as they are: make decoding cheaper, or decode in more workers\n",
        rejected=True,
    )


def _advice(case: Case, idle: float, suffix: str, read: float, from_disk: float | None) -> Advice:
    assert case.whatif is not None
    found = held(case, "paths")
    name = identifier(found[1].name if found is not None else None, "paths")
    evidence = {
        "fetch a batch": us(case.mean_us("fetch") or 0.0),
        "fetching waits": percent(idle),
        "read by the loader": size(read),
    }
    if from_disk is not None:
        evidence["of it from the disk"] = size(from_disk)
    code = _PACKED + (
        f'pack(dataset.{name}, "packed.bin")  # once\n'
        'dataset.packed = Packed("packed.bin")\n'
        f"# in __getitem__ of {dataset_class(case)}: open self.packed[index] instead of self.{name}[index]\n"
    )
    return Advice(
        title="Pack the files into one",
        why=(
            f"Fetching opens a {suffix or 'small'} file for each sample and waits {percent(idle)} of its time. One "
            "large file, read through a memory map, needs no search and no opening."
        ),
        evidence=evidence,
        predicted=case.whatif.predict(fetch=(1 - idle, 1 - idle * (1 - STILL_WAITS))),
        code=code,
        caveat="It gains at most what fetching waits now. Little on a local NVMe disk; most on a network file system.",
    )
