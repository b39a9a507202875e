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

from .procfs import read_all

# Version 1 says "no limit" with a number near 2**63, rounded down to a page.
NO_LIMIT_BYTES = 1 << 60

# File and line of a figure in version 1, and in version 2.
THROTTLED_TIME = "cpu.stat throttled_time", "cpu.stat throttled_usec"
MEM_LIMIT = "memory.limit_in_bytes", "memory.max"
MEM_USED = "memory.usage_in_bytes", "memory.current"
MEM_CACHED = "memory.stat total_inactive_file", "memory.stat inactive_file"

At = tuple[int, Path]  # the version and the folder of a group


@dataclass(frozen=True)
class Cgroup:
    """Limits that bind this process, and where to read its use."""

    cpu_quota: float | None = None
    mem_limit_bytes: int | None = None
    cpu: At | None = None
    memory: At | None = None

    def throttled_ns(self) -> int:
        """Time throttled since the group was made; -1 where unknown."""
        time = _figure(self.cpu, THROTTLED_TIME)
        micros = self.cpu is not None and self.cpu[0] == 2
        return time * 1000 if micros and time > 0 else time

    def memory_bytes(self) -> int:
        """Memory charged to the group, page cache included; -1 where unknown."""
        return _figure(self.memory, MEM_USED)

    def cached_bytes(self) -> int:
        """Of that, page cache that is given up where memory is short; -1 where unknown."""
        return _figure(self.memory, MEM_CACHED)


def find(root: Path = Path("/")) -> Cgroup:
    """This process's cgroup as seen below `root`. Never raises: what cannot be read is None."""
    cpu, memory = (_groups(name, root) for name in ("cpu", "memory"))
    quota, cpu_at = _tightest(cpu, _cpu_quota)
    limit, memory_at = _tightest(memory, _mem_limit)
    return Cgroup(
        quota,
        None if limit is None else int(limit),
        cpu_at,
        memory_at,
    )


def _groups(name: str, root: Path) -> tuple[At, ...]:
    """The groups of this process for the controller `name`, from its own up to the root of what can
    be seen; none where it is not in use or not mounted where all systems mount it."""
    base = root / "sys/fs/cgroup"
    found: list[tuple[int, Path, str]] = []
    for line in _text(root / "proc/self/cgroup").split("\n"):
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        if name in controllers.split(","):
            found.append((1, base / name, path))
        elif number == "0":
            found += [(2, point, path) for point in (base, base / "unified")]
    for version, point, path in sorted(found):
        folders = _walk(point, path)
        offers = (
            (each / ("cpu.max" if name == "cpu" else "memory.current")).exists()
            or name in _text(each / "cgroup.controllers").split()
            for each in folders
        )
        if (version == 1 and folders) or any(offers):
            return tuple((version, folder) for folder in folders)
    return ()


def _walk(point: Path, path: str) -> tuple[Path, ...]:
    # Seen from inside a container the path may lie outside of what is mounted: then the mount is
    # the container's own.
    parts = [part for part in path.split("/") if part] if ".." not in path else []
    folders = [point.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1)]
    return tuple(folder for folder in folders if folder.is_dir())


def _tightest(
    groups: tuple[At, ...], limit_of: Callable[[At], float | None]
) -> tuple[float | None, At | None]:
    """The tightest limit and its group; the process's own group where there is no limit."""
    known = [(limit, at) for at in groups if (limit := limit_of(at)) is not None]
    own = next(iter(groups), None)
    return min(known, key=lambda each: each[0], default=(None, own))


def _cpu_quota(at: At) -> float | None:
    """In cores."""
    version, folder = at
    if version == 2:
        texts = _text(folder / "cpu.max").split()
    else:
        texts = [_text(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period")]
    quota, period = (_number(text) for text in (*texts, "", "")[:2])
    return quota / period if quota > 0 and period > 0 else None


def _mem_limit(at: At) -> float | None:
    limit = _figure(at, MEM_LIMIT)
    return limit if 0 <= limit < NO_LIMIT_BYTES else None


def _figure(at: At | None, places: tuple[str, str]) -> int:
    """A number of this group, -1 where it is unknown."""
    if at is None:
        return -1
    file, _, key = places[at[0] - 1].partition(" ")
    text = _text(at[1] / file)
    return _number(f"\n{text}".partition(f"\n{key} ")[2].partition("\n")[0] if key else text)


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
