"""Which code is compared with which."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Change:
    """A change of the project in the folder `root`: exactly one of the others is given.

    `patch`: a unified diff, applied to the project as it lies there. `revision`: a commit that the
    project as it lies there is compared with. `other`: a folder with the changed project.
    """

    root: Path
    patch: str | None = None
    revision: str | None = None
    other: Path | None = None


@dataclass(frozen=True)
class Options:
    """How to try. `budget_s`: the most seconds from the first batches on. `batches`: how many are
    compared. `random`: as distributions."""

    budget_s: float = 60.0
    batches: int = 64
    random: bool = False
