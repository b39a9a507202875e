"""Files that hold many samples, seen because this process has them open or mapped.

This is how reading past Python's `open` shows: h5py, lmdb, pyarrow and numpy's memory maps keep
their files open or mapped from sample to sample.
"""

from __future__ import annotations

import os
import sys

from ...guard.error_origin import forgiving, is_ours

MAX_DESCRIPTORS = 4096
MAX_MAPS_BYTES = 4 << 20

_KINDS = {
    ".mdb": "lmdb",
    ".lmdb": "lmdb",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".hdf": "hdf5",
    ".he5": "hdf5",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".tar": "tar",
    ".tar.gz": "tar",
    ".tgz": "tar",
    ".tar.zst": "tar",
    ".tar.xz": "tar",
    ".tar.bz2": "tar",
    ".zip": "zip",
    ".npz": "npz",
    ".npy": "npy",
    ".memmap": "memmap",
    ".mmap": "memmap",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".db": "sqlite",
}
_TWO_PARTS = (".gz", ".zst", ".xz", ".bz2")
# Mapped by the interpreter and its libraries themselves.
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
    """The suffix in lower case, ".tar.gz" in one; "" for none that looks like one."""
    stem, suffix = os.path.splitext(path)
    if suffix in _TWO_PARTS:
        suffix = os.path.splitext(stem)[1] + suffix
    return suffix.lower() if 1 < len(suffix) <= 16 and " " not in suffix else ""


def kind_of(path: str) -> str | None:
    """What kind of container a file of this name is; None for any other."""
    return _KINDS.get(suffix_of(path))


def size_of(path: str, kind: str) -> int | None:
    """Bytes of the file, None where it cannot be asked. LMDB may make its file as large as its map,
    and leave holes."""
    try:
        found = os.stat(path)
    except (OSError, ValueError) as error:
        if not is_ours(error):
            raise
        return None
    held = getattr(found, "st_blocks", None)
    return min(found.st_size, held * 512) if kind == "lmdb" and held is not None else found.st_size


def held_containers(without: str, process: str = "/proc/self") -> dict[str, str]:
    """Path → kind, of the containers this process has open or mapped, but those below the folder
    `without`."""
    found = {}
    for path in _open_files(process):
        kind = kind_of(path)
        if kind is not None and kind != "npy" and not path.startswith(without):
            found[path] = kind
    for path in _mapped_files(process):
        if not path.startswith(without):
            found[path] = kind_of(path) or "memmap"
    return found


def _open_files(process: str) -> list[str]:
    folder = f"{process}/fd"
    found = []
    try:
        names = os.listdir(folder)[:MAX_DESCRIPTORS]
    except OSError as error:
        if not is_ours(error):
            raise
        return []
    for name in names:
        path = ""
        with forgiving(OSError):  # the descriptor by which the folder itself was read
            path = os.readlink(f"{folder}/{name}")
        if path.startswith("/") and not path.endswith(" (deleted)"):
            found.append(path)
    return found


def _mapped_files(process: str) -> set[str]:
    """Files mapped as data: neither code nor what belongs to the system and the interpreter."""
    try:
        with open(f"{process}/maps", "rb") as file:
            lines = file.read(MAX_MAPS_BYTES).splitlines()
    except OSError as error:
        if not is_ours(error):
            raise
        return set()
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
