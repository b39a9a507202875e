"""Store the data so that reading it costs less, where reading is what fetching does: packed files,
fitting containers.

What it looks for
    Fetching that is the main part of all waiting (MAIN_PART, 50 %), and what it is made of: reading
    (waiting for files and copying their bytes) and decoding. Many small files (an open or more for
    two samples) of which reading is at least 30 % of fetch (LEAST_READING). Containers read in a
    way that costs more than it must: opened for each sample, HDF5 chunks and Parquet row groups of
    which little is used (a quarter or less), LMDB files that bring three times what is asked for, a
    compressed .npz archive a sample.

Why it matters
    A file that is opened for each sample costs a search, a round trip on a network file system, and
    a seek. One file with all of them costs none of that. But where decoding is the work, a day of
    converting gains next to nothing: at most the part of fetching that is reading, and that is said
    beforehand.

What to change
    The layout that fits: one packed file with an index on a disk of the machine, one LMDB file (its
    map_size computed) on a network, tar shards where files are read in order there,
    a memory-mapped array where samples have one shape and do not change. The code
    converts the files and makes a loader that reads them.

When not to
    On a local NVMe disk reported gains are 0.92 to 1.03, and from the page cache there are none:
    this is said with the share that reading takes. Files read in parallel by enough workers hide
    their latency. Tar shards can only be read in order, and need at least four for each worker and
    rank. `loaderscope probe-storage` tries it on some files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...case.advice import Advice, Outcome, Unmeasured
from ...case.case import Case
from ...case.fetching import (
    FETCH_COMPUTES,
    FETCH_WAITS,
    MAIN_PART,
    fetch_idle_share,
    fetch_share,
    file_suffix,
)
from ...code.layouts.container_access import Finding, findings
from ...code.layouts.layout_choice import chosen
from ...schema.figures import count, figure, percent, size, times, us
from ...schema.report_model import StorageSummary
from ...storage.disk_reads import loader_reads
from ...storage.files import few_files, listed

NAME = "storage-format"
KIND = "speed"
EFFORT = "a conversion"

# Less of fetch than this is no real part: packing would gain 1.2 at the most, if all of it went
# away.
LEAST_READING = 0.3
LEAST_OPENS = 0.5
# Reading this much less than the batches hold, files compressed tenfold included, is no reading of
# samples.
LEAST_READ_OF_BATCHES = 0.02
# Of what is read, less than this from the disk is reading from the page cache.
WARM = 0.05
# From here on, waiting for a core is worth a word.
TOLD_CORE_WAIT = 0.05
# What stays of reading, (low, high), by where the files lie. docs/causes.md, "Many small files":
# gcsfuse 2.0× at 4 workers, 1.23× at 8; local NVMe 0.92 to 1.03, so that there it may be nearly
# all.
REMOTE_STAYS, LOCAL_STAYS = (0.05, 0.5), (0.1, 0.9)
UNKNOWN_STAYS = (0.0, 0.6)
# Of decoding, what is saved where decoded samples are stored: taking a row out of a memory map
# still costs some.
DECODED_SAVES = (0.5, 0.95)

NO_PACKING = "Packing the files into another format would not help"
_KEEP = "# keep the files as they are: make decoding cheaper, or decode in more workers\n"


def examine(case: Case) -> Iterator[Outcome]:
    storage = case.report.storage
    if (
        case.whatif is None
        or fetch_share(case) < MAIN_PART
        or case.report.verdict == "compute-bound"
    ):
        return
    if storage is not None:
        wrong = next(findings(case, storage), None)
        if wrong is not None:
            yield _container(case, wrong)
            return
    if not _many_files(case, storage):
        return
    idle = fetch_idle_share(case)
    if idle is None:
        yield Unmeasured(
            "whether fetching waits for its files was not measured: no CPU time of it was recorded"
        )
    elif storage is not None and storage.reading_share is not None and storage.samples:
        yield _by_shares(case, storage, storage.reading_share)
    else:
        yield from _by_idle(case, idle)


def _many_files(case: Case, storage: StorageSummary | None) -> bool:
    if storage is not None and storage.opens_per_sample is not None and storage.samples:
        return storage.opens_per_sample >= LEAST_OPENS and not few_files(case.loader)
    return file_suffix(case) is not None


def _container(case: Case, wrong: Finding) -> Advice:
    change = case.change(code=wrong.code, fetch=wrong.left)
    return change.advise(wrong.title, wrong.why, wrong.evidence, caveat=wrong.caveat)


@dataclass(frozen=True)
class _Work:
    """Shares of what fetching does while it has a core: waiting for one is no work, and grows and
    shrinks with it.

    They are told as parts of all of fetch, as every figure of the report.
    """

    reading: float
    decoding: float
    other: float
    core: float  # share of fetch that waits for a core

    def part(self, share: float) -> str:
        """One of them as a part of all of fetch."""
        return percent(share * (1 - self.core))

    @property
    def of(self) -> str:
        """What the parts are of."""
        if self.core < TOLD_CORE_WAIT:
            return "of fetch"
        return f"of fetch, which waits for a core {percent(self.core)} of its time"


def _work(case: Case, storage: StorageSummary, reading: float) -> _Work:
    waiting = case.report.waiting
    core = min(
        (waiting.fetch_core_wait_share or 0.0) if waiting is not None else 0.0,
        storage.other_share or 0.0,
    )
    scale = 1 / max(0.05, 1 - core)
    other = max(0.0, (storage.other_share or 0.0) - core)
    return _Work(
        min(1.0, reading * scale), (storage.decoding_share or 0.0) * scale, other * scale, core
    )


def _by_shares(case: Case, storage: StorageSummary, reading: float) -> Advice:
    """What was seen of reading decides: the files themselves were looked at."""
    evidence = _evidence(case, storage)
    work = _work(case, storage, reading)
    remote = any(mount.kind in ("network", "fuse") for mount in storage.mounts)
    disk, read = storage.disk_bytes_per_sample, storage.read_bytes_per_sample
    warm = not remote and disk is not None and bool(read) and disk < WARM * (read or 0.0)
    if work.reading < LEAST_READING:
        return _rejected(case, work, evidence)
    if warm:
        change = case.change(code="# keep the files as they are\n", fetch=1 - work.reading)
        most = times(change.predicted.high)
        return change.would_not_help(
            title="Packing files that are read from memory gains little",
            why=(
                "All files come from the page cache of this machine: reading is "
                f"{work.part(work.reading)} {work.of}, but no disk is waited for. One file instead "
                f"of many can gain at most {most}, and on local disks 0.92 to 1.03 is reported."
            ),
            evidence=evidence,
        )
    low, high = REMOTE_STAYS if remote else LOCAL_STAYS
    layout = chosen(case, storage, remote)
    saved = (
        (work.decoding * DECODED_SAVES[0], work.decoding * DECODED_SAVES[1])
        if layout.decoded
        else (0.0, 0.0)
    )
    left = (1 - work.reading * (1 - low) - saved[1], 1 - work.reading * (1 - high) - saved[0])
    return case.change(code=layout.code, fetch=left).advise(
        title=layout.title,
        why=(
            f"Each sample opens {figure(storage.opens_per_sample or 0.0)} files, and reading them "
            f"is {work.part(work.reading)}, decoding {work.part(work.decoding)} {work.of}. "
            f"{layout.why}"
        ),
        evidence={**evidence, **layout.evidence},
        caveat=layout.caveat,
    )


def _by_idle(case: Case, idle: float) -> Iterator[Outcome]:
    """Without looks, the waiting stands for reading."""
    evidence = {"fetch a batch": us(case.mean_us("fetch") or 0.0), "fetching waits": percent(idle)}
    if idle < FETCH_COMPUTES:
        change = case.change(code=_KEEP, fetch=1 - idle)
        yield change.would_not_help(
            title=NO_PACKING,
            why=(
                f"Packing them can gain at most {times(change.predicted.high)}: fetching is "
                f"computing (decoding) {percent(1 - idle)} of its time, and waits for files at "
                f"most {percent(idle)}."
            ),
            evidence=evidence,
        )
        return
    reads = loader_reads(case)
    if reads is None:
        yield Unmeasured(
            f"storage is not measured: fetching waits {percent(idle)} of its time, for files or "
            "for something else. Record with LOADERSCOPE_LOOKS on, or with the system sampler, to "
            "see what is read"
        )
    elif idle >= FETCH_WAITS and _really_reads(case, reads.any_bytes):
        storage = case.report.storage
        layout = chosen(case, storage, remote=False)
        evidence["read by the loader"] = size(reads.any_bytes)
        if reads.disk_bytes is not None:
            evidence["of it from the disk"] = size(reads.disk_bytes)
        low, high = UNKNOWN_STAYS
        yield case.change(
            code=layout.code, fetch=(1 - idle * (1 - low), 1 - idle * (1 - high))
        ).advise(
            title=layout.title,
            why=(
                f"Fetching opens a {file_suffix(case) or 'small'} file for each sample and waits "
                f"{percent(idle)} of its time. {layout.why}"
            ),
            evidence={**evidence, **layout.evidence},
            caveat=layout.caveat,
        )


def _rejected(case: Case, work: _Work, evidence: dict[str, str]) -> Advice:
    change = case.change(code=_KEEP, fetch=1 - work.reading)
    why = (
        f"Decoding is {work.part(work.decoding)} and reading {work.part(work.reading)} {work.of}: "
        f"packing the files can gain at most {times(change.predicted.high)}."
    )
    if work.other > max(work.decoding, work.reading):
        why += f" What fetching waits for, {work.part(work.other)} of it, is not the files."
    return change.would_not_help(why, evidence, title=NO_PACKING)


def _evidence(case: Case, storage: StorageSummary) -> dict[str, str]:
    found = {"fetch a batch": us(case.mean_us("fetch") or 0.0)}
    for name, share in (("reading", storage.reading_share), ("decoding", storage.decoding_share)):
        if share is not None:
            found[name] = percent(share)
    if storage.other_share is not None and storage.other_share >= 0.01:
        found["waiting for other things"] = percent(storage.other_share)
    files = listed(case.loader)
    kind = storage.kinds[0] if storage.kinds else None
    if kind is not None and kind.mean_bytes is not None:
        found["files"] = (
            f"{count(files) + ' ' if files else ''}{kind.suffix or 'files'} of "
            f"{size(kind.mean_bytes)}"
        )
    if storage.opens_per_sample is not None:
        found["opened a sample"] = figure(storage.opens_per_sample)
    if storage.mounts:
        found["they lie on"] = f"{storage.mounts[0].kind} ({storage.mounts[0].type})"
    if storage.disk_bytes_per_sample is not None and storage.read_bytes_per_sample:
        share = min(1.0, storage.disk_bytes_per_sample / storage.read_bytes_per_sample)
        found["read from the disk"] = f"{percent(share)} of the bytes"
    if storage.wait_us_per_open is not None and storage.wait_us_per_open >= 1.0:
        found["waited for a file"] = f"at most {us(storage.wait_us_per_open)}"
    return found


def _really_reads(case: Case, nbytes: float) -> bool:
    batch = case.report.bytes_per_batch
    made = batch * case.report.batches if batch is not None else None
    return nbytes > 0 and (made is None or nbytes >= LEAST_READ_OF_BATCHES * made)
