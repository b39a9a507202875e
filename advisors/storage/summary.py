"""What fetching reads, and the shares of reading, decoding and the rest in it.

Reading is waiting for files and copying their bytes. Waiting is 1 - CPU / wall, without waiting for
a core; of it, what stack samples saw waiting for a disk or the network, where that is known.
Opening a file and copying it out of the page cache take CPU time: OPEN_US a file and bytes ÷
COPY_BYTES_PER_US, both measured on two cores of a cloud machine (x86-64, ext4 and overlay; `open`,
`read` and `close` of 1 kB to 2 MB of warm files took 10 µs and 60 µs a MB), and at most all CPU
time of fetch. Decoding is the rest of the CPU time.
"""

import re
from collections.abc import Mapping

from ...profiler.store.lanes.columns import Columns
from ...profiler.store.run.run import LoaderRun, ProcessRun, Run, SystemRun
from ...profiler.store.sampled_fetches import SampledFetches
from ..schema.report_model import EpochReads, FileKind, Mount, Stage, StorageSummary
from ..stage_model.core_wait import core_wait_ratio, waiting_besides_core
from ..stage_model.measured import low, mean, peak
from ..stage_model.stages import cpu_shares, total
from ..stage_model.wait_kinds import WaitKinds, wait_kinds
from .disk_reads import reads_of
from .files import containers_of, dataset_bytes, is_stored

OPEN_US = 12.0
COPY_BYTES_PER_US = 10_000.0
# Fewer bytes and page faults a sample are the process's own, and read no sample.
LEAST_BYTES, LEAST_FAULTS = 16.0, 0.01
# Waiting of these kinds is for what is read (`WAITS` of stack samples).
READS = ("disk", "network", "fault")
# If less than this part of the bytes comes from the disk, the page cache holds them all.
FROM_CACHE = 0.01

_MOUNTS = {
    "local": "ext[234]|xfs|btrfs|zfs|f2fs|bcachefs|apfs|hfs|ntfs3?|vfat|exfat|jfs|reiserfs|squashfs"
    "|erofs|iso9660",
    "overlay": "overlay|overlayfs|aufs|unionfs",
    "network": "nfs[34]?|cifs|smb[23]?|smbfs|lustre|gpfs|ceph|beegfs|9p|afs|orangefs|pvfs2"
    "|glusterfs|wekafs|virtiofs|gfs2|ocfs2|panfs",
    "fuse": r"fuse(blk)?(\..*)?",
    "memory": "tmpfs|ramfs|devtmpfs|hugetlbfs",
}
_NO_SAMPLER = "the system sampler recorded nothing"
_NO_LOOKS = "no batch was sampled in detail for it"
_NO_OPEN = "no file was seen being opened"


def storage_of(
    run: Run, process: ProcessRun, loader: LoaderRun, stages: Mapping[str, Stage]
) -> StorageSummary | None:
    """The loader's storage summary; None where nothing of it was recorded."""
    looks, reasons = loader.looks, dict(loader.looks.reasons)
    if not looks.samples and not reasons and not is_stored(loader):
        return None
    system = run.host_of(process)
    read = _per_sample(loader, system, reasons)
    mounts = tuple(Mount(m.path, m.type, mount_kind(m.type), m.opens) for m in looks.mounts)
    containers = containers_of(loader)
    whole, why = dataset_bytes(loader)
    if whole is None:
        reasons["dataset_bytes"] = why
    memory = _memory_bytes(system, sum(c.bytes or 0 for c in containers))
    if memory is None:
        reasons["memory_bytes"] = (
            _NO_SAMPLER if system is None else "how much memory there is was not sampled"
        )
    idle = core_wait_ratio(run, process, loader, in_main=not loader.num_workers)
    reading = decoding = other = waited_us = None
    split = _split(loader, stages, read, mounts, idle, wait_kinds(run, process, loader))
    if isinstance(split, str):
        reasons |= dict.fromkeys(("reading_share", "decoding_share", "other_share"), split)
    else:
        reading, decoding, other, waited_us = split
    opens, waited = read["opens"], None
    if waited_us is not None and opens:
        waited = waited_us / opens
    elif opens == 0:
        reasons["wait_us_per_open"] = _NO_OPEN
    else:
        unknown = "what fetching waits for was not measured"
        reasons["wait_us_per_open"] = reasons.get("opens_per_sample", unknown)
    return StorageSummary(
        samples=looks.samples,
        opens_per_sample=opens,
        reopened_share=looks.reopened / looks.opens if looks.opens else None,
        read_bytes_per_sample=read["read_bytes"],
        disk_bytes_per_sample=read["disk_bytes"],
        read_calls_per_sample=read["read_calls"],
        wait_us_per_open=waited,
        directories=looks.directories if looks.opens else None,
        kinds=_kinds(looks),
        mounts=mounts,
        containers=containers,
        epochs=_epochs(looks),
        dataset_bytes=whole,
        memory_bytes=memory,
        reading_share=reading,
        decoding_share=decoding,
        other_share=other,
        reasons=reasons,
    )


def mount_kind(type_: str) -> str:
    """local, overlay, network, fuse, memory or other, by the kernel's name of the file system."""
    kinds = (kind for kind, names in _MOUNTS.items() if re.fullmatch(names, type_.lower()))
    return next(kinds, "other")


def _per_sample(
    loader: LoaderRun, system: SystemRun | None, reasons: dict[str, str]
) -> dict[str, float | None]:
    """Figures a sample, from the sampled fetches or else from the sampler's counters. Reasons for
    missing ones are added to `reasons`."""
    looks, samples = loader.looks, total(loader, "samples")
    counted = ("read_bytes", "disk_bytes", "read_calls", "major_faults")
    found = {name: _a_sample(looks, name) for name in counted}
    for name, count in reads_of(system, loader).items() if samples else ():
        if found[name] is None:
            found[name] = count / samples
    seen = looks.samples > 0 and (looks.opens > 0 or "opens" not in looks.reasons)
    found["opens"] = looks.opens / looks.samples if seen else None
    found["fetch_us"] = _sample_us(loader, samples)
    for name in ("opens", "read_bytes", "disk_bytes", "read_calls"):
        if found[name] is None:
            why = looks.reasons.get(name) or looks.reasons.get("looks", _NO_LOOKS)
            reasons.setdefault(f"{name}_per_sample", why)
    if not looks.opens:
        why = _NO_OPEN if seen else reasons["opens_per_sample"]
        for name in ("reopened_share", "directories"):
            reasons.setdefault(name, why)
    return found


def _split(
    loader: LoaderRun,
    stages: Mapping[str, Stage],
    read: Mapping[str, float | None],
    mounts: tuple[Mount, ...],
    core_wait: float | None,
    kinds: WaitKinds | None,
) -> tuple[float, float, float, float] | str:
    """The three shares of fetch, and what reading a sample waits in µs; or why they are not
    known."""
    fetch, fetch_us = stages.get("fetch"), read["fetch_us"]
    if fetch is None or not fetch.count or fetch_us is None:
        return "fetching was not timed"
    cpu, _ = cpu_shares(loader)
    if cpu is None:
        return "no CPU time of fetching was recorded"
    if read["opens"] is None and read["read_bytes"] is None and read["disk_bytes"] is None:
        return "what fetching reads was not measured: no fetch and no system sample shows it"
    opens, read_bytes, disk_bytes, faults = (
        read[name] or 0.0 for name in ("opens", "read_bytes", "disk_bytes", "major_faults")
    )
    reads = opens > 0 or max(read_bytes, disk_bytes) >= LEAST_BYTES or faults >= LEAST_FAULTS
    # Code that sleeps waits for nothing that is read.
    reads = reads and not any("sleep" in part.names for part in loader.inspection.parts)
    # Nothing was waited for if all files are on disks whose reads are counted, and none was.
    counted = all(m.kind in ("local", "overlay", "memory") for m in mounts)
    in_cache = read["disk_bytes"] is not None and disk_bytes <= FROM_CACHE * read_bytes
    if mounts and counted and in_cache and not faults:
        reads = False
    copied_us = opens * OPEN_US + read_bytes / COPY_BYTES_PER_US
    copying = min(cpu, copied_us / max(fetch_us, 1e-3))
    reading_part = kinds.share(*READS) if kinds is not None else float(reads)
    waited = (waiting_besides_core(1 - cpu, core_wait) or 0.0) * reading_part
    reading = min(1.0, waited + copying)
    decoding = min(1.0 - reading, cpu - copying)
    return reading, decoding, max(0.0, 1.0 - reading - decoding), waited * fetch_us


def _sample_us(loader: LoaderRun, samples: float) -> float | None:
    looks = loader.looks
    if looks.samples and looks.fetch_ns > 0:
        return looks.fetch_ns / looks.samples / 1e3
    fetch = mean(loader.batches["fetch_ns"])
    return fetch * loader.count / samples / 1e3 if fetch is not None and samples else None


def _a_sample(looks: SampledFetches, name: str) -> float | None:
    known = [epoch for epoch in looks.epochs if getattr(epoch, name) >= 0 and epoch.samples > 0]
    samples = sum(epoch.samples for epoch in known)
    return sum(float(getattr(epoch, name)) for epoch in known) / samples if samples else None


def _kinds(looks: SampledFetches) -> tuple[FileKind, ...]:
    found = [
        FileKind(
            suffix.lower(),
            t.opens,
            t.bytes / t.sized if t.sized else None,
            t.max_bytes if t.sized else None,
        )
        for suffix, t in looks.suffixes.items()
    ]
    return tuple(sorted(found, key=lambda kind: (-kind.opens, kind.suffix)))


def _epochs(looks: SampledFetches) -> tuple[EpochReads, ...]:
    found = []
    for epoch in sorted(looks.epochs, key=lambda each: each.epoch):
        if epoch.samples > 0:
            counts = epoch.read_bytes, epoch.disk_bytes, epoch.major_faults
            figures = (count / epoch.samples if count >= 0 else None for count in counts)
            found.append(EpochReads(epoch.epoch, epoch.samples, *figures))
    return tuple(found)


def _memory_bytes(system: SystemRun | None, mapped: float) -> int | None:
    """Memory that can hold files: the container's limit or the machine's memory, without the memory
    of the run's processes, and at most the available memory.

    The processes' memory includes pages of mapped files, which are page cache: up to `mapped` bytes
    are not taken off.
    """
    if system is None:
        return None
    machine = system.machine
    totals = (
        peak(machine["mem_total_bytes"]) or system.mem_total_bytes,
        peak(machine["cgroup_mem_limit_bytes"]) or system.cgroup_mem_limit_bytes,
    )
    known = [total for total in totals if total]
    if not known:
        return None
    left = min(known) - max(0.0, _held_bytes(system.process) - mapped)
    available = low(machine["mem_available_bytes"])
    return int(max(0.0, left if available is None else min(left, available)))


def _held_bytes(process: Columns) -> float:
    """The sum of the peaks of PSS (or USS) of all processes. A worker and its successors of the
    same number count once."""
    most: dict[tuple[int, ...], float] = {}
    names = ("owner_pid", "role", "loader", "worker", "pss_bytes", "uss_bytes")
    for *place, pss, uss in zip(*(process[name].tolist() for name in names), strict=True):
        held = float(pss if pss >= 0 else max(uss, 0))
        most[tuple(place)] = max(most.get(tuple(place), 0.0), held)
    return sum(most.values())
