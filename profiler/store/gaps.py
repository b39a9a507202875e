"""Which figures are missing with an unknown torch, and where that is recorded.

A part that is not instrumented works as it does without us; only its figures are missing. Which,
and why, is in the reasons of the loader and of the process, from which a report takes its first
lines.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import RunUnreadable
from ..base.metadata import read_json, text
from .rundir import FORMAT

# Where a worker's fetch probe keeps its sums: (folder of the session, number of the loader, epoch);
# None: none.
Place = tuple[str, int, int] | None

# What comes with a batch, in its envelope; the drawing of its indices is matched to it by that.
INSIDE_WORKERS = ("index", "fetch", "collate", "pack", "queued", "unpack", "pin")
EVERYTHING = (*INSIDE_WORKERS, "wait", "compute", "stall")

# In a process's reasons, the keys of those about torch begin so.
KEY = "torch: "
OTHER_LOADER = "loader: "  # those about a loader that is no DataLoader


@dataclass(frozen=True)
class Gap:
    """Parts that are not where they are in every known torch, and the figures that are missing for
    that."""

    package: str
    where: str  # "loaders with workers"
    missing: tuple[str, ...]  # in words
    figures: tuple[str, ...]

    @property
    def key(self) -> str:
        """Where it stands among a process's reasons."""
        return KEY + self.where

    @property
    def reason(self) -> str:
        """Why a figure is missing."""
        version = getattr(sys.modules.get(self.package), "__version__", "of an unknown version")
        return f"{self.package} {version} fits nothing known: {'; '.join(self.missing)}"

    @property
    def sentence(self) -> str:
        """What a report says before all else."""
        return f"{self.reason}. Missing from these figures: {listed(self.figures)} of {self.where}."


def tell_from_worker(place: Place, error: Exception) -> None:
    """Record why the workers of a loader are not measured; the first worker does it for all."""
    with suppress(Exception):
        reason = f"{type(error).__name__}: {error}"
        if place is not None:
            folder, loader, _ = place
            with _file(Path(folder), loader).open("x", encoding="utf-8") as file:
                json.dump({"format": FORMAT, "reason": reason}, file)
        if sys.stderr is not None:  # `print` would take standard output in its place
            print(f"loaderscope: workers are not measured: {reason}", file=sys.stderr)


def told_by_worker(folder: Path, loader: int) -> str | None:
    """Why the workers of this loader were not measured; None if they were."""
    file = _file(folder, loader)
    try:
        return text(read_json(file), "reason") if file.exists() else None
    except (RunUnreadable, OSError):
        return "its workers recorded why, but that cannot be read"


def _file(folder: Path, loader: int) -> Path:
    return folder / f"loader{loader}.bare.json"


def listed(figures: tuple[str, ...]) -> str:
    """The figures' names, as in a sentence."""
    if figures == EVERYTHING:
        return "everything"
    *rest, last = figures
    return f"{', '.join(rest)} and {last}" if rest else last
