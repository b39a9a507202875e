"""The files and containers of a loader's data set, and its total size."""

import numpy as np

from ...profiler.store.inspection import Part
from ...profiler.store.run.run import LoaderRun
from ...profiler.store.sampled_fetches import SampledFetches
from ..schema.report_model import Container

# Kinds of attributes that are containers: those of `Container`, and "hf", which is "arrow".
_HELD = ("memmap", "hdf5", "lmdb", "arrow", "hf", "zarr")
# Libraries that open files without Python's `open`, by names in the source.
_LIBRARIES = {"h5py": "hdf5", "sqlite3": "sqlite", "lmdb": "lmdb", "ParquetFile": "parquet"}
# Files that hold many samples, by suffix.
SUFFIXES = {
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".he5": "hdf5",
    ".nc": "hdf5",
    ".tar": "tar",
    ".tgz": "tar",
    ".tar.gz": "tar",
    ".zip": "zip",
    ".lmdb": "lmdb",
    ".mdb": "lmdb",
    ".db": "sqlite",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".npz": "npz",
    ".npy": "npy",
    ".jsonl": "lines",
    ".ndjson": "lines",
    ".tfrecord": "records",
    ".bin": "file",
    ".dat": "file",
}
# A file with at least this many samples holds many; with fewer, it is one of many small files.
MANY = 4


def is_stored(loader: LoaderRun) -> bool:
    """Whether its data set lists files or holds a container."""
    kinds = {each.kind for part in loader.inspection.parts for each in part.attributes}
    return not kinds.isdisjoint(("paths", *_HELD))


def length_of(loader: LoaderRun) -> int | None:
    """The number of samples of the data set, if it is known."""
    length = loader.config.get("dataset_len")
    if isinstance(length, int) and length > 0:
        return length
    part = loader.inspection.dataset
    return part.length if part is not None and part.length else None


def listed(loader: LoaderRun) -> int | None:
    """How many files the data set lists, in all lists that its access methods use."""
    found = 0
    for part in loader.inspection.parts:
        lists = [a for a in part.attributes if a.kind == "paths" and a.length]
        found += sum(a.length or 0 for a in lists if a.name in part.names) or max(
            (a.length or 0 for a in lists), default=0
        )
    return found or None


def containers_of(loader: LoaderRun) -> tuple[Container, ...]:
    """Containers that were seen open, and for kinds of which none was seen, those that an attribute
    holds or whose library the source names. Their path is then the attribute ("dataset.path")."""
    found = {c.path: Container(c.kind, c.path, c.bytes) for c in loader.looks.containers}
    kinds = {c.kind for c in found.values()}
    kinds |= {"memmap", "npy"} if kinds & {"memmap", "npy"} else set()
    for attribute in (each for part in loader.inspection.parts for each in part.attributes):
        kind = "arrow" if attribute.kind == "hf" else attribute.kind
        if attribute.kind in _HELD and kind not in kinds:
            path = f"dataset.{attribute.name}"
            found.setdefault(path, Container(kind, path, attribute.nbytes))
    if loader.looks.samples:  # else nothing shows that the library is used at all
        kinds |= {c.kind for c in found.values()}
        for part in loader.inspection.parts:
            for name, kind in _LIBRARIES.items():
                if name in part.names and kind not in kinds:
                    path = f"dataset.{text_of(part) or name}"
                    found.setdefault(path, Container(kind, path, None))
    return tuple(found.values())


def text_of(part: Part) -> str | None:
    """The only attribute that holds a text its access methods use, which is most likely the
    path."""
    texts = [a.name for a in part.attributes if a.kind == "text" and a.name in part.names]
    return texts[0] if len(texts) == 1 else None


def main_suffix(looks: SampledFetches) -> str | None:
    """The suffix of more than half of the opens in lower case, "" for files without one; None if
    there is no such suffix."""
    main = (name for name, totals in looks.suffixes.items() if totals.opens * 2 > looks.opens > 0)
    return next(map(str.lower, main), None)


def few_files(loader: LoaderRun) -> bool:
    """Whether samples come from few files that are opened again and again, each with MANY samples
    or more.

    Each process counts its files, so workers count a file several times. After several epochs, any
    data set has opened its files again, so the files are compared with its length.
    """
    looks, length = loader.looks, length_of(loader)
    if not looks.opens or looks.reopened * 2 < looks.opens:
        return False
    named = listed(loader)
    if named is not None and main_suffix(looks) not in SUFFIXES:
        # A picture that is used for several samples is still read for each.
        return False
    files = named or looks.distinct / max(1, loader.num_workers)
    return files * MANY <= (length if length is not None else looks.samples)


def opens_of_a_file(loader: LoaderRun) -> float | None:
    """About how often an epoch opens each file, if it draws in random order; None if not known.

    Of n opens of N files drawn at random, N (1 - e^(-n/N)) are of different files (the expected
    number of occupied cells); N is what gives as many as were seen. Within a batch, a file counts
    once: each sample may open its own twice.
    """
    looks, batches = loader.looks, loader.batches
    # A length that only code of the user's tells: as many as an epoch gave, at least.
    given = np.bincount(batches["epoch"].clip(0), batches["samples"])
    length = length_of(loader) or given.max(initial=0)
    if not (length and looks.samples and looks.different and looks.distinct):
        return None
    if loader.config.get("shuffle") is not True or looks.opens != looks.distinct + looks.reopened:
        return None
    # Each worker may open all of them.
    in_all = length * looks.different / looks.samples * max(1, loader.num_workers)
    files = np.geomspace(in_all, looks.distinct, 200)
    seen = -np.expm1(-looks.different / files) * files
    return in_all / float(files[np.argmin(abs(seen - looks.distinct))])


def dataset_bytes(loader: LoaderRun) -> tuple[float | None, str]:
    """(estimated size of all that the data set reads, why it is not known)."""
    looks, length = loader.looks, length_of(loader)
    sizes = {c.path: c.bytes for c in containers_of(loader)}
    opens_a_sample = looks.opens / looks.samples if looks.samples else 0.0
    in_files = 0.0
    if opens_a_sample >= 0.5:
        sized = sum(t.sized for t in looks.suffixes.values())
        if not sized:
            return None, "the sizes of its files were not seen"
        mean = sum(t.bytes for t in looks.suffixes.values()) / sized
        count: float | None = listed(loader)
        if count is None and few_files(loader):
            count = looks.distinct / max(1, loader.num_workers)
        elif count is None and length is not None:
            count = length * opens_a_sample
        if count is None:
            return None, "its length is not known"
        in_files = mean * count
        ends = tuple(suffix.lower() for suffix in looks.suffixes if suffix)
        sizes = {path: n for path, n in sizes.items() if not path.lower().endswith(ends)}
    known = [n for n in sizes.values() if n is not None]
    if in_files or known:
        return in_files + sum(known), ""
    unknown = "the size of its container is not known"
    return None, unknown if sizes else "no file or container of it was seen"
