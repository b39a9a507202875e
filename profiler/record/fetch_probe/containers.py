"""Files with many samples that this process has open or mapped.

h5py, lmdb, pyarrow and numpy's memory maps bypass Python's `open`, but keep their files open or
mapped from sample to sample.
"""

from __future__ import annotations

import os
import sys

from ...guard.error_origin import forgiving

MAX_DESCRIPTORS = 4096
MAX_MAPS_BYTES = 4 << 20

_SUFFIXES = {
    "lmdb": ".mdb .lmdb",
    "hdf5": ".h5 .hdf5 .hdf .he5",
    "parquet": ".parquet .pq",
    "arrow": ".arrow .feather .ipc",
    "tar": ".tar .tar.gz .tgz .tar.zst .tar.xz .tar.bz2",
    "zip": ".zip",
    "npz": ".npz",
    "npy": ".npy",
    "memmap": ".memmap .mmap",
    "sqlite": ".sqlite .sqlite3 .db",
    "text": ".jsonl .jsonl.gz .jsonl.zst .jsonl.xz .json.gz .csv.gz .tsv.gz .txt.gz",
}
_KINDS = {suffix: kind for kind, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}
_TWO_PARTS = (".gz", ".zst", ".xz", ".bz2")
# Mapped by the interpreter and its libraries.
_NOT_DATA = (
    ".so",
    ".pyc",
    ".mo",
    ".cache",
    ".ttf",
    ".otf",
    "locale-archive",
    ".seg",
    ".ptx",
    ".cubin",
)
_SYSTEM = (
    "/usr/",
    "/lib",
    "/etc/",
    "/dev/",
    "/proc/",
    "/sys/",
    "/memfd:",
    "/SYSV",
    "/run/",
    "/opt/nvidia/",
)


def suffix_of(path: str) -> str:
    """The suffix in lower case, also ".tar.gz"; "" if there is none."""
    stem, suffix = os.path.splitext(path)
    if suffix in _TWO_PARTS:
        suffix = os.path.splitext(stem)[1] + suffix
    return suffix.lower() if 1 < len(suffix) <= 16 and " " not in suffix else ""


def kind_of(path: str) -> str | None:
    """The kind of container with this file name, None for other files."""
    return _KINDS.get(suffix_of(path))


def size_of(path: str, kind: str) -> int | None:
    """Bytes of the file, None if unknown. LMDB's file may be as large as its map, with holes."""
    with forgiving(OSError, ValueError):
        found = os.stat(path)
        return min(found.st_size, found.st_blocks * 512) if kind == "lmdb" else found.st_size
    return None


def held_containers(without: str, process: str = "/proc/self") -> dict[str, str]:
    """Path → kind of the containers this process has open or mapped, except below the folder
    `without`."""
    opened = _open_files(process)
    found = {path: kind for path in opened if (kind := kind_of(path)) and kind != "npy"}
    found |= {path: kind_of(path) or "memmap" for path in _mapped_files(process)}
    return {path: kind for path, kind in found.items() if not path.startswith(without)}


def _open_files(process: str) -> list[str]:
    folder = f"{process}/fd"
    found: list[str] = []
    with forgiving(OSError):
        for name in os.listdir(folder)[:MAX_DESCRIPTORS]:
            with forgiving(OSError):  # the descriptor by which the folder was read is closed
                found.append(os.readlink(f"{folder}/{name}"))
    return [path for path in found if path.startswith("/") and not path.endswith(" (deleted)")]


def _mapped_files(process: str) -> set[str]:
    """Files mapped as data: neither code nor what belongs to the system and the interpreter."""
    lines: list[bytes] = []
    with forgiving(OSError), open(f"{process}/maps", "rb") as file:
        lines = file.read(MAX_MAPS_BYTES).splitlines()
    paths: set[bytes] = set()
    code: set[bytes] = set()
    for line in lines:
        at = line.find(b"/")
        if at < 0 or line.endswith(b" (deleted)"):
            continue
        path = line[at:]
        (code if line[:at].split(b" ", 2)[1][2:3] == b"x" else paths).add(path)
    found = {os.fsdecode(path.replace(b"\\012", b"\n")) for path in paths - code}
    return {path for path in found if _is_data(path)}


def _is_data(path: str) -> bool:
    if kind_of(path) is not None:
        return True
    name = os.path.basename(path)
    if name.endswith(_NOT_DATA) or ".so." in name or path.startswith(_SYSTEM):
        return False
    return not path.startswith((sys.prefix + os.sep, sys.base_prefix + os.sep))
