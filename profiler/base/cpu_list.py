"""CPUs as Linux writes lists of them: "0-3,8"."""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_CPU = 1 << 16


def cpu_list(cpus: Iterable[int]) -> str:
    """The numbers as ranges, in order."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and cpu == runs[-1][-1] + 1:
            runs[-1][1:] = [cpu]
        else:
            runs.append([cpu])
    return ",".join("-".join(map(str, run)) for run in runs)


def cpus_of(text: str) -> frozenset[int]:
    """The numbers in such a list; empty for a text that is none."""
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part)
        if match is None or int(match[2] or match[1]) >= MAX_CPU:
            return frozenset()
        found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return frozenset(found)
