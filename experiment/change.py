"""What a trial compares, and how."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Change:
    """A change of the project in the folder `root`. Exactly one of the other fields is given.

    `patch`: a unified diff of the working tree. `revision`: a commit that the working tree is
    compared with. `other`: a folder with the changed project.
    """

    root: Path
    patch: str | None = None
    revision: str | None = None
    other: Path | None = None


@dataclass(frozen=True)
class Options:
    """`budget_s`: max seconds of turns. `batches`: how many are compared."""

    budget_s: float = 60.0
    batches: int = 64
