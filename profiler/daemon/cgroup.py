"""The container's limits and use: cgroup version 1 and 2, and the two mixed.

A process is in one group a controller, and every group above it limits it too: the tightest limit
on the way to the root counts, and throttling is accounted where the limit is. Source: the kernel's
cgroup-v1 and cgroup-v2 documents.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ..base.mounts import table

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
        """(ns throttled, periods throttled) since the group was made; -1 each where it is not
        told."""
        if self.cpu is None:
            return -1, -1
        version, folder = self.cpu
        told = dict(
            line.split()[:2] for line in _text(f"{folder}/cpu.stat").splitlines() if " " in line
        )
        periods = int(told.get("nr_throttled", -1))
        if version == 2:
            micros = int(told.get("throttled_usec", -1))
            return (micros * 1000 if micros >= 0 else -1), periods
        return int(told.get("throttled_time", -1)), periods

    def memory_bytes(self) -> int:
        """Memory charged to the group, page cache included; -1 where it is not told."""
        if self.memory is None:
            return -1
        version, folder = self.memory
        return _number(
            _text(f"{folder}/memory.current" if version == 2 else f"{folder}/memory.usage_in_bytes")
        )

    def cached_bytes(self) -> int:
        """Of that, page cache that is given up where memory is short; -1 where it is not told."""
        if self.memory is None:
            return -1
        told = dict(
            line.split()[:2]
            for line in _text(f"{self.memory[1]}/memory.stat").splitlines()
            if " " in line
        )
        return _number(
            told.get("inactive_file" if self.memory[0] == 2 else "total_inactive_file", "")
        )


def find(root: Path = Path("/"), pid: int | str = "self") -> Cgroup:
    """The cgroup of process `pid` as seen below `root`. Never raises: what cannot be read is
    None."""
    cpu, memory = controller("cpu", root, pid), controller("memory", root, pid)
    versions = [group.version for group in (cpu, memory) if group is not None]
    quota, cpu_at = _cpu_quota(cpu) if cpu else (None, None)
    limit, memory_at = _mem_limit(memory) if memory else (None, None)
    return Cgroup(
        min(versions) if versions else None,
        quota,
        limit,
        (cpu.version, cpu_at) if cpu and cpu_at else None,
        (memory.version, memory_at) if memory and memory_at else None,
    )


def controller(name: str, root: Path, pid: int | str) -> Group | None:
    """Where the controller `name` keeps this process, None where it is not in use or not
    mounted."""
    paths: dict[str, str] = {}
    for line in _text(root / "proc" / str(pid) / "cgroup").split("\n"):
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for key in controllers.split(",") if number != "0" else ["0"]:
            paths[key] = path
    mounts = _mounts(root / "proc" / str(pid) / "mountinfo")
    for version, key in ((1, name), (2, "0")):
        if key in paths and key in mounts:
            mount_root, point = mounts[key]
            folders = _walk(root / point.lstrip("/"), mount_root, paths[key])
            if version == 1 or any(_offers(folder, name) for folder in folders):
                return Group(version, folders)
    return None


def _mounts(mountinfo: Path) -> dict[str, tuple[str, str]]:
    """Controller ('0' for version 2) to (folder of the hierarchy that is mounted, mount point)."""
    found: dict[str, tuple[str, str]] = {}
    for entry in table(mountinfo):
        keys = (
            ("0",) if entry.type == "cgroup2" else entry.options if entry.type == "cgroup" else ()
        )
        for key in keys:
            found.setdefault(key, (entry.root, entry.path))
    return found


def _walk(point: Path, mount_root: str, path: str) -> tuple[Path, ...]:
    # Seen from inside a container the path may lie outside of what is mounted: then the mount is
    # the container's own.
    inside = (
        path[len(mount_root.rstrip("/")) :]
        if (path + "/").startswith(mount_root.rstrip("/") + "/")
        else ""
    )
    parts = [part for part in inside.split("/") if part]
    if ".." in parts:
        parts = []
    folders = [point.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1)]
    return tuple(folder for folder in folders if folder.is_dir())


def _offers(folder: Path, name: str) -> bool:
    return (folder / ("cpu.max" if name == "cpu" else "memory.current")).exists() or (
        name in _text(folder / "cgroup.controllers").split()
    )


def _cpu_quota(group: Group) -> tuple[float | None, Path | None]:
    """(tightest quota in cores, its folder); the process's own folder where there is no quota."""
    best, at = None, None
    for folder in group.folders:
        if group.version == 2:
            quota_text, _, period_text = _text(folder / "cpu.max").partition(" ")
        else:
            quota_text, period_text = (
                _text(folder / "cpu.cfs_quota_us"),
                _text(folder / "cpu.cfs_period_us"),
            )
        quota, period = _number(quota_text), _number(period_text)
        if quota > 0 and period > 0 and (best is None or quota / period < best):
            best, at = quota / period, folder
    return best, at or (group.folders[0] if group.folders else None)


def _mem_limit(group: Group) -> tuple[int | None, Path | None]:
    best, at = None, None
    for folder in group.folders:
        limit = _number(
            _text(folder / ("memory.max" if group.version == 2 else "memory.limit_in_bytes"))
        )
        if 0 <= limit < NO_LIMIT_BYTES and (best is None or limit < best):
            best, at = limit, folder
    return best, at or (group.folders[0] if group.folders else None)


def _text(path: Path | str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return ""
    try:
        parts = []
        while part := os.read(fd, 65536):
            parts.append(part)
        return os.fsdecode(b"".join(parts))  # groups are folders: their names may hold any byte
    except OSError:
        return ""
    finally:
        os.close(fd)


def _number(text: str) -> int:
    """The number in `text`, -1 for 'max' and for anything else that is none."""
    try:
        return int(text)
    except ValueError:
        return -1
