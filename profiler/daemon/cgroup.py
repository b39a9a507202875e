"""The container's limits and use: cgroup version 1 and 2, and the two mixed.

A process is in one group a controller, and every group above it limits it too: the tightest limit
on the way to the root counts, and throttling is accounted where the limit is. Source: the kernel's
cgroup-v1 and cgroup-v2 documents.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..base.mounts import table
from .procfs import read_all

# Version 1 says "no limit" with a number near 2**63, rounded down to a page.
NO_LIMIT_BYTES = 1 << 60


@dataclass(frozen=True)
class Group:
    """A controller's folders, from the process's own group up to the root of what can be seen."""

    version: int
    folders: tuple[Path, ...]


@dataclass(frozen=True)
class Cgroup:
    """Limits that bind this process, and where to read its use. `version` is None where there is no
    cgroup."""

    version: int | None = None
    cpu_quota: float | None = None
    mem_limit_bytes: int | None = None
    cpu: tuple[int, Path] | None = None
    memory: tuple[int, Path] | None = None

    def throttled(self) -> tuple[int, int]:
        """(ns throttled, periods throttled) since the group was made; -1 each where unknown."""
        if self.cpu is None:
            return -1, -1
        version, folder = self.cpu
        stat = _table(folder / "cpu.stat")
        micros = _number(stat.get("throttled_usec", ""))
        ns = micros * 1000 if micros >= 0 else -1
        if version == 1:
            ns = _number(stat.get("throttled_time", ""))
        return ns, _number(stat.get("nr_throttled", ""))

    def memory_bytes(self) -> int:
        """Memory charged to the group, page cache included; -1 where unknown."""
        if self.memory is None:
            return -1
        version, folder = self.memory
        return _number(
            _text(folder / ("memory.current" if version == 2 else "memory.usage_in_bytes"))
        )

    def cached_bytes(self) -> int:
        """Of that, page cache that is given up where memory is short; -1 where unknown."""
        if self.memory is None:
            return -1
        version, folder = self.memory
        key = "inactive_file" if version == 2 else "total_inactive_file"
        return _number(_table(folder / "memory.stat").get(key, ""))


def find(root: Path = Path("/"), pid: int | str = "self") -> Cgroup:
    """The cgroup of process `pid` as seen below `root`. Never raises: what cannot be read is
    None."""
    cpu, memory = (controller(name, root, pid) for name in ("cpu", "memory"))
    versions = [group.version for group in (cpu, memory) if group is not None]
    quota, cpu_at = _tightest(cpu, _cpu_quota)
    limit, memory_at = _tightest(memory, _mem_limit)
    return Cgroup(
        min(versions, default=None), quota, None if limit is None else int(limit), cpu_at, memory_at
    )


def controller(name: str, root: Path, pid: int | str) -> Group | None:
    """Where the controller `name` keeps this process, None where it is not in use or not
    mounted."""
    process = root / "proc" / str(pid)
    paths: dict[str, str] = {}
    for line in _text(process / "cgroup").split("\n"):
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for key in controllers.split(",") if number != "0" else ["0"]:
            paths[key] = path
    # Controller ("0" for version 2) to (folder of the hierarchy that is mounted, mount point).
    mounts: dict[str, tuple[str, str]] = {}
    for entry in table(process / "mountinfo"):
        keys = {"cgroup2": ("0",), "cgroup": entry.options}.get(entry.type, ())
        for key in keys:
            mounts.setdefault(key, (entry.root, entry.path))
    for version, key in ((1, name), (2, "0")):
        if key in paths and key in mounts:
            mount_root, point = mounts[key]
            folders = _walk(root / point.lstrip("/"), mount_root.rstrip("/"), paths[key])
            if version == 1 or any(_offers(folder, name) for folder in folders):
                return Group(version, folders)
    return None


def _walk(point: Path, mount_root: str, path: str) -> tuple[Path, ...]:
    # Seen from inside a container the path may lie outside of what is mounted: then the mount is
    # the container's own.
    inside = path[len(mount_root) :] if (path + "/").startswith(mount_root + "/") else ""
    parts = [part for part in inside.split("/") if part]
    if ".." in parts:
        parts = []
    folders = [point.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1)]
    return tuple(folder for folder in folders if folder.is_dir())


def _offers(folder: Path, name: str) -> bool:
    return (folder / ("cpu.max" if name == "cpu" else "memory.current")).exists() or (
        name in _text(folder / "cgroup.controllers").split()
    )


def _tightest(
    group: Group | None, limit_of: Callable[[Group, Path], float | None]
) -> tuple[float | None, tuple[int, Path] | None]:
    """(the tightest limit, its version and folder); the process's own folder where there is no
    limit."""
    if group is None or not group.folders:
        return None, None
    limits = ((limit_of(group, folder), folder) for folder in group.folders)
    known = [(limit, folder) for limit, folder in limits if limit is not None]
    limit, at = min(known, key=lambda each: each[0], default=(None, group.folders[0]))
    return limit, (group.version, at)


def _cpu_quota(group: Group, folder: Path) -> float | None:
    """In cores."""
    if group.version == 2:
        texts = _text(folder / "cpu.max").split()
    else:
        texts = [_text(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period")]
    quota, period = (_number(text) for text in (*texts, "", "")[:2])
    return quota / period if quota > 0 and period > 0 else None


def _mem_limit(group: Group, folder: Path) -> float | None:
    name = "memory.max" if group.version == 2 else "memory.limit_in_bytes"
    limit = _number(_text(folder / name))
    return limit if 0 <= limit < NO_LIMIT_BYTES else None


def _table(path: Path) -> dict[str, str]:
    """A file of `key number` lines."""
    lines = (line.split() for line in _text(path).splitlines())
    return {fields[0]: fields[1] for fields in lines if len(fields) > 1}


def _text(path: Path) -> str:
    try:
        return os.fsdecode(read_all(path))  # groups are folders: their names may hold any byte
    except OSError:
        return ""


def _number(text: str) -> int:
    """The number in `text`, -1 for "max" and for anything else that is none."""
    try:
        return int(text)
    except ValueError:
        return -1
