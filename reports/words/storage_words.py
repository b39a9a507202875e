"""What is read from where, in plain words and as rows of ready texts."""

from collections.abc import Iterable, Iterator
from pathlib import PurePath

from ...advisors.schema.report_model import Container, Mount, StorageSummary
from ...profiler.base.metadata import clean
from .units import by_reason, count, known, percent, plural, size

KINDS_NAMED = 3  # suffixes, file systems and containers named in a sentence
LEAST_READ_BYTES = 64  # a sample
# of the memory: a data set nearer to it than this competes with everything else for its place
FITS_BELOW = 0.9


def storage_rows(storage: StorageSummary | None) -> list[tuple[str, str]]:
    """(label, sentence) pairs in plain words; what is not known is left out."""
    return [(label, said) for label, said in _rows(storage) if said] if storage else []


def _rows(s: StorageSummary) -> Iterator[tuple[str, str]]:
    bytes_ = max(s.read_bytes_per_sample or 0.0, s.disk_bytes_per_sample or 0.0)
    # Of what lies in memory nothing is read, but for a few bytes of pipes and clocks.
    if s.opens_per_sample or s.containers or bytes_ >= LEAST_READ_BYTES:
        files = "; ".join(filter(None, (_files(s), _cached(s))))
        yield "read", files
        shares = known(
            ", ",
            (f"reading {percent(s.reading_share)}", s.reading_share),
            (f"decoding {percent(s.decoding_share)}", s.decoding_share),
            (f"the rest {percent(s.other_share)}", s.other_share),
        )
        yield "fetch is", shares if files else ""
    yield "in use", _first(map(_container, s.containers))
    yield "data set", _fits(s)


def _files(s: StorageSummary) -> str:
    """'1.0 file a sample (.png 13.0 kB each), in 12 folders, on overlay'."""
    opens, reopened = s.opens_per_sample, s.reopened_share
    if opens is None:
        return ""
    few = f"{opens:.1f}" if opens < 9.95 else count(opens)
    files = "file" if 0.95 <= opens < 1.05 else "files"
    kinds = _first(
        f"{kind.suffix or 'no suffix'}{f' {size(kind.mean_bytes)} each' if kind.mean_bytes else ''}"
        for kind in sorted(s.kinds, key=lambda kind: -kind.opens)
    )
    mounts = _first(dict.fromkeys(map(_mount, sorted(s.mounts, key=lambda m: -m.opens))))
    again = reopened is not None and reopened >= 0.05
    return known(
        "",
        (f"{few} {files} a sample", opens or None),
        (f" ({kinds})", kinds or None),
        (f", in {plural(s.directories or 0, 'folder')}", s.directories or None),
        (f", on {mounts}", mounts or None),
        (f"; {percent(reopened)} of them opened before", again or None),
    )


def _mount(mount: Mount) -> str:
    """'overlay', 'nfs4 (network)', 'ext4 (local)'."""
    name, words = mount.type, mount.kind
    return name if name.startswith(words) or words == "other" else f"{name} ({words})"


def _cached(s: StorageSummary) -> str:
    """How much of what is read comes from the page cache."""
    read, disk = s.read_bytes_per_sample, s.disk_bytes_per_sample
    if read is None:
        return f"{size(disk)} a sample from disk" if disk else ""
    if read < 1:
        return ""
    cached = percent(max(0.0, 1 - (disk or 0.0) / read))
    return f"{size(read)} a sample" + known("", (f", {cached} of it from the page cache", disk))


def _container(c: Container) -> str:
    name = clean(PurePath(c.path).name or c.path, 60)
    return f"{clean(c.kind, 20)} {name}" + known("", (f" ({size(c.bytes)})", c.bytes))


def _fits(s: StorageSummary) -> str:
    data, memory = s.dataset_bytes, s.memory_bytes
    if data is None:
        return ""
    if not memory:
        return f"about {size(data)}"
    fits = "fits" if data < FITS_BELOW * memory else "barely fits"
    if data > memory:
        fits = "does not fit"
    return f"about {size(data)}, the page cache may use {size(memory)}: it {fits}"


def _first(words: Iterable[str], limit: int = KINDS_NAMED) -> str:
    """The first few, and how many more there are."""
    found = list(words)
    more = [f"{count(len(found) - limit)} more"] if len(found) > limit else []
    return ", ".join([*found[:limit], *more])


def unmeasured_storage(storage: StorageSummary) -> str | None:
    """What could not be measured, with its reason."""
    found = by_reason(storage.reasons.items())
    return f"storage: not measured: {found}" if found else None
