"""Store the data so that reading it costs less: packed files, containers that fit.

What it looks for
    Fetching that is the main part of all waiting (MAIN_PART, 50 %), and what it is made of: reading
    (waiting for files and copying their bytes) and decoding. Many small files (an open or more for
    two samples) of which reading is at least 30 % of fetch (LEAST_READING). Containers read in a
    way that costs more than it must: opened for each sample, HDF5 chunks and Parquet row groups of
    which little is used (a quarter or less), LMDB files that bring three times what is asked for, a
    compressed .npz archive a sample.

Why it matters
    A file that is opened for each sample costs a search, a round trip on a network file system, and
    a seek. One file with all of them costs none of that. But if decoding is the work, a day of
    converting gains next to nothing: at most the part of fetching that is reading. The report says
    so beforehand.

What to change
    The layout that fits: one packed file with an index, or tar shards if files are read in order
    from a network. The code packs the files and makes a loader that reads them.

When not to
    On a local NVMe disk reported gains are 0.92 to 1.03, and from the page cache there are none:
    the report gives the share that reading takes. Files read in parallel by enough workers hide
    their latency. Tar shards can only be read in order, and need at least four for each worker and
    rank. `loaderscope probe-storage` tries it on some files.
"""

from ...case.advice import Advice, Outcomes, Unmeasured
from ...case.case import Case
from ...case.fetching import MAIN_PART, core_wait_share, fetch_share, file_suffix
from ...code.layouts.container_access import findings
from ...code.layouts.packed import packed_code
from ...code.loader_form import form_of
from ...schema.evidence import Evidence, count, figure, percent, size, times, us
from ...schema.report_model import StorageSummary
from ...storage.files import few_files, listed

EFFORT = "a conversion"
NEEDS = "prediction waiting"

# Less of fetch than this is no real part: packing would gain 1.2 at the most, if all of it went
# away.
LEAST_READING = 0.3
LEAST_OPENS = 0.5
# Of what is read, less than this from the disk is reading from the page cache.
WARM = 0.05
# From here on, waiting for a core is named.
NAMED_CORE_WAIT = 0.05
# What stays of reading, (low, high), by where the files lie. docs/causes.md, "Many small files":
# gcsfuse 2.0× at 4 workers, 1.23× at 8; local NVMe 0.92 to 1.03, so that there it may be nearly
# all.
REMOTE_STAYS, LOCAL_STAYS = (0.05, 0.5), (0.1, 0.9)

NO_PACKING = "Packing the files into another format would not help"
_TRY = (
    "loaderscope probe-storage tries this on a sample of the files before any day is spent "
    "converting."
)
_ONE_FILE = (
    "Pack the files into one",
    "One large file, read through a memory map, needs no search and no opening.",
    "# By hand: write all files one after another into one, keep where each begins in an array, "
    "and read\n# mapped[begin:end] of a memory map, opened at first use in each worker, where a "
    "file is opened now.\n",
    "It gains at most what reading takes now: little on a local NVMe disk, most on a network file "
    f"system. {_TRY}",
)
_SHARDS = (
    "Pack the files into tar shards",
    "They are read in order from a network: tar shards are read as one stream each.",
    "# By hand: write the files into tar files, four for each worker and rank, and read them from "
    "end to\n# end, for example with webdataset: each worker and rank its own share\n",
    "Shards are read from end to end: shuffling is of shards and within a buffer only, the number "
    "of batches of an epoch may differ by one a worker, and len(loader) is not known. " + _TRY,
)
_KEEP = "# keep the files as they are: make decoding cheaper, or decode in more workers\n"


def examine(case: Case) -> Outcomes:
    storage = case.report.storage
    if fetch_share(case) < MAIN_PART:
        return
    wrong = next(findings(case, storage), None) if storage is not None else None
    if wrong is not None:
        yield wrong
    elif not _many_files(case, storage):
        return
    elif storage is not None and storage.reading_share is not None and storage.samples:
        yield _by_shares(case, storage, storage.reading_share)
    else:
        why = (storage.reasons if storage else {}).get(
            "reading_share", "nothing of it was recorded"
        )
        yield Unmeasured(f"how much of fetching is reading its files is not known: {why}")


def _many_files(case: Case, storage: StorageSummary | None) -> bool:
    if storage is not None and storage.opens_per_sample is not None and storage.samples:
        return storage.opens_per_sample >= LEAST_OPENS and not few_files(case.loader)
    return file_suffix(case) is not None


def _by_shares(case: Case, storage: StorageSummary, reading: float) -> Advice:
    """What was seen of reading decides: the files themselves were looked at."""
    evidence, decoding = _evidence(case, storage), storage.decoding_share or 0.0
    # Waiting for a core is no work, and grows and shrinks with it: shares count of the rest.
    core = min(core_wait_share(case), storage.other_share or 0.0)
    worked = max(0.05, 1 - core)
    part = min(1.0, reading / worked)
    of = "of fetch"
    if core >= NAMED_CORE_WAIT:
        of += f", which waits for a core {percent(core)} of its time"
    remote = any(mount.kind in ("network", "fuse") for mount in storage.mounts)
    disk, read = storage.disk_bytes_per_sample, storage.read_bytes_per_sample or 0.0
    if part < LEAST_READING:
        change = case.change(code=_KEEP, fetch=1 - part)
        other, why = (storage.other_share or 0.0) - core, ""
        if other > max(decoding, reading):
            why = f" What fetching waits for, {percent(other)} of it, is not the files."
        return change.would_not_help(
            f"Decoding is {percent(decoding)} and reading {percent(reading)} {of}: packing the "
            f"files can gain at most {times(change.predicted.high)}.{why}",
            evidence,
            title=NO_PACKING,
        )
    if not remote and disk is not None and disk < WARM * read:
        change = case.change(code="# keep the files as they are\n", fetch=1 - part)
        return change.would_not_help(
            "All files come from the page cache of this machine: reading is "
            f"{percent(reading)} {of}, but no disk is waited for. One file instead of many can "
            f"gain at most {times(change.predicted.high)}, and on local disks 0.92 to 1.03 is "
            "reported.",
            evidence,
            title="Packing files that are read from memory gains little",
        )
    low, high = REMOTE_STAYS if remote else LOCAL_STAYS
    left = (1 - part * (1 - low), 1 - part * (1 - high))
    in_order = case.meets("stream") or case.config.get("shuffle") is False
    # Orders and choices of the user's own would be lost.
    dealt = str(case.config.get("sampler")).endswith("DistributedSampler")
    shards = remote and in_order and (form_of(case).plain or dealt)
    title, why, words, caveat = _SHARDS if shards else _ONE_FILE
    code = None if shards else packed_code(case)
    return case.change(code=code or words, fetch=left).advise(
        title,
        f"Each sample opens {figure(storage.opens_per_sample or 0.0)} files. Reading them is "
        f"{percent(reading)}, decoding {percent(decoding)} {of}. {why}",
        evidence,
        caveat=caveat,
    )


def _evidence(case: Case, storage: StorageSummary) -> Evidence:
    disk, read = storage.disk_bytes_per_sample, storage.read_bytes_per_sample
    kind, mount = next(iter(storage.kinds), None), next(iter(storage.mounts), None)
    return {
        "fetch a batch": us(case.mean_us("fetch")),
        "reading": percent(storage.reading_share),
        "decoding": percent(storage.decoding_share),
        "files": count(listed(case.loader) or None, kind.suffix if kind is not None else ""),
        "opened per sample": figure(storage.opens_per_sample),
        "file system": f"{mount.kind} ({mount.type})" if mount is not None else None,
        "read from the disk": percent(
            min(1.0, disk / read) if disk is not None and read else None, "of the bytes"
        ),
        "mean size of a file": size(kind.mean_bytes if kind is not None else None),
    }
