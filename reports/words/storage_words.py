"""What is read from where, in plain words and as rows of ready texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

from ...advisors.schema.report_model import EpochReads, StorageSummary
from ...profiler.base.metadata import clean
from .reasons import by_reason
from .units import UNKNOWN, count, percent, plural, size

Row = tuple[str, ...]

KINDS_NAMED = 3  # suffixes, file systems and containers named in a sentence
MAX_ROWS = 100
# What of a storage summary may be unmeasured, in words.
_WORDS = {
    "opens_per_sample": "files a sample",
    "reopened_share": "files opened again",
    "read_bytes_per_sample": "bytes a sample",
    "disk_bytes_per_sample": "bytes from disk",
    "read_calls_per_sample": "reads a sample",
    "wait_us_per_open": "waiting a file",
    "sequential_share": "order of reading",
    "dataset_bytes": "size of the data set",
    "memory_bytes": "memory for the page cache",
    "reading_share": "share of reading",
    "decoding_share": "share of decoding",
    "other_share": "share of the rest",
}
# of the memory: a data set nearer to it than this competes with everything else for its place
FITS_BELOW = 0.9


def storage_rows(storage: StorageSummary | None) -> list[tuple[str, str]]:
    """(label, sentence) pairs in plain words; what is not known is left out."""
    return list(_storage(storage)) if storage is not None else []


def _storage(s: StorageSummary) -> Iterator[tuple[str, str]]:
    files = "; ".join(filter(None, (_files(s), _cached(s)))) if _reads(s) else ""
    if files:
        yield "read", files
    parts = (
        ("reading", s.reading_share),
        ("decoding", s.decoding_share),
        ("the rest", s.other_share),
    )
    known = [f"{name} {percent(share)}" for name, share in parts if share is not None]
    if known and files:  # of what lies in memory, nothing is read or decoded
        yield "fetch is", ", ".join(known)
    if s.containers:
        yield "in use", ", ".join(_first(_container(c.kind, c.path, c.bytes) for c in s.containers))
    whole = "; ".join(filter(None, (_fits(s), _epochs(s.epochs))))
    if whole:
        yield "data set", whole


def _reads(s: StorageSummary) -> bool:
    """Whether anything was seen read: a file opened, or bytes."""
    bytes_ = max(s.read_bytes_per_sample or 0.0, s.disk_bytes_per_sample or 0.0)
    return bool(s.opens_per_sample) or bool(s.containers) or bytes_ >= 1


def _files(s: StorageSummary) -> str:
    """'1.0 file a sample (.png 13.0 kB each), in 12 folders, on overlay'."""
    if s.opens_per_sample is None:
        return ""
    opens = s.opens_per_sample
    text = (
        "no file opened"
        if opens == 0
        else f"{_few(opens)} {'file' if 0.95 <= opens < 1.05 else 'files'} a sample"
    )
    kinds = sorted(s.kinds, key=lambda kind: -kind.opens)
    told = [
        f"{clean(kind.suffix, 20) or 'no suffix'} "
        f"{f'{size(kind.mean_bytes)} each' if kind.mean_bytes else ''}".strip()
        for kind in kinds
    ]
    if told:
        text += f" ({', '.join(_first(told))})"
    if s.directories:
        text += f", in {plural(s.directories, 'folder', 'folders')}"
    mounts = dict.fromkeys(
        _mount(mount.type, mount.kind) for mount in sorted(s.mounts, key=lambda each: -each.opens)
    )
    if mounts:
        text += f", on {', '.join(_first(mounts))}"
    if s.reopened_share is not None and s.reopened_share >= 0.05:
        text += f"; {percent(s.reopened_share)} of them opened before"
    return text


def _few(value: float) -> str:
    return f"{value:.1f}" if value < 9.95 else count(value)


def _mount(type_: str, kind: str) -> str:
    """'overlay', 'nfs4 (network)', 'ext4 (local)'."""
    name, words = clean(type_, 30), clean(kind, 20)
    return name if name.startswith(words) or words == "other" else f"{name} ({words})"


def _cached(s: StorageSummary) -> str:
    """How much of what is read comes from the page cache."""
    read, disk = s.read_bytes_per_sample, s.disk_bytes_per_sample
    if read is None:
        return f"{size(disk)} a sample from disk" if disk else ""
    if read < 1:
        return ""
    text = f"{size(read)} a sample"
    if disk is not None:
        text += f", {percent(max(0.0, 1 - disk / read))} of it from the page cache"
    return text


def _container(kind: str, path: str, bytes_: int | None) -> str:
    name = clean(PurePath(path).name or path, 60)
    return f"{clean(kind, 20)} {name}" + (f" ({size(bytes_)})" if bytes_ is not None else "")


def _fits(s: StorageSummary) -> str:
    data, memory = s.dataset_bytes, s.memory_bytes
    if data is None:
        return ""
    if not memory:
        return f"about {size(data)}"
    fits = (
        "it fits"
        if data < FITS_BELOW * memory
        else "it does not fit"
        if data > memory
        else "it barely fits"
    )
    return f"about {size(data)}, the page cache may use {size(memory)}: {fits}"


def _epochs(epochs: tuple[EpochReads, ...]) -> str:
    """The first epoch is cold; what later ones still bring from the disk is what the cache cannot
    hold."""
    known = [each for each in epochs if each.disk_bytes is not None and each.samples > 0]
    if len(known) < 2:
        return ""
    first, *later = known
    samples = sum(each.samples for each in later)
    warm = sum((each.disk_bytes or 0.0) * each.samples for each in later) / samples
    if not first.disk_bytes and not warm:
        return ""  # that all came from the page cache is said already
    which = "the first epoch" if first.epoch == 0 else f"epoch {first.epoch}"
    return f"from disk a sample: {size(first.disk_bytes)} in {which}, {size(warm)} in later ones"


def _first(words: Iterable[str], limit: int = KINDS_NAMED) -> list[str]:
    """The first few, and how many more there are."""
    told = list(words)
    return told if len(told) <= limit else [*told[:limit], f"{count(len(told) - limit)} more"]


def unmeasured_storage(storage: StorageSummary) -> str | None:
    """What could not be measured, with its reason."""
    found = by_reason((_WORDS.get(name, name), why) for name, why in storage.reasons.items())
    return f"storage: not measured: {found}" if found else None


def storage_tables(s: StorageSummary) -> Iterator[tuple[str, Sequence[str], Sequence[Row]]]:
    """(title, heads, rows) of what was read, in detail; empty tables too."""
    kinds = sorted(s.kinds, key=lambda kind: -kind.opens)
    yield (
        "Files opened, by suffix",
        ("suffix", "opens", "size, mean", "largest"),
        [
            (k.suffix or "no suffix", count(k.opens), size(k.mean_bytes), size(k.max_bytes))
            for k in kinds[:MAX_ROWS]
        ],
    )
    yield (
        "File systems read from",
        ("mounted at", "type", "opens"),
        [(m.path, _mount(m.type, m.kind), count(m.opens)) for m in s.mounts[:MAX_ROWS]],
    )
    yield (
        "Files that hold many samples",
        ("kind", "file", "size"),
        [(c.kind, c.path, size(c.bytes)) for c in s.containers[:MAX_ROWS]],
    )
    yield (
        "Read a sample, epoch by epoch",
        ("epoch", "samples looked at", "read", "of it from disk", "page faults"),
        [
            (
                f"{e.epoch}",
                count(e.samples),
                size(e.read_bytes),
                size(e.disk_bytes),
                f"{e.major_faults:.2g}" if e.major_faults is not None else UNKNOWN,
            )
            for e in s.epochs[:MAX_ROWS]
        ],
    )
