"""What a torch that fits nothing known costs the figures: the parts left bare, and how a report comes to say so.

Whatever is left bare works as it does without us; only its figures are missing. Which, and why, stands in the loader's
reasons and in the process's, where a report finds its first lines.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import torch_parts
from .errors import RunUnreadable
from .metadata import read_json, text
from .rundir import FORMAT

if TYPE_CHECKING:
    from .recorder import Recorder
    from .run import LoaderRun, Run
    from .worker_target import Place

# What comes with a batch, in its envelope; the drawing of its indices is matched to it by that.
INSIDE_WORKERS = ("index", "fetch", "collate", "pack", "queued", "unpack", "pin")
EVERYTHING = (*INSIDE_WORKERS, "wait", "compute", "stall")

# In a process's reasons, the keys of those about torch begin so.
_KEY = "torch: "


@dataclass(frozen=True)
class Gap:
    """Parts that are not where they were in every torch tried, and the figures that are missing for it."""

    package: str
    where: str  # "loaders with workers"
    missing: tuple[str, ...]  # in words
    figures: tuple[str, ...]

    @property
    def reason(self) -> str:
        """Why a figure is missing."""
        return f"{torch_parts.version_of(self.package)} fits nothing known: {'; '.join(self.missing)}"

    @property
    def sentence(self) -> str:
        """What a report says before all else."""
        return f"{self.reason}. Missing from these figures: {_all(self.figures)} of {self.where}."


def tell(recorder: Recorder, gap: Gap) -> None:
    """Bring the gap to the run directory: once a loader, and once a process."""
    reasons = recorder.facts.setdefault("reasons", {})
    if any(reasons.get(figure) != gap.reason for figure in gap.figures):
        reasons.update(dict.fromkeys(gap.figures, gap.reason))
        recorder.write()
    if recorder.session is not None:
        recorder.session.note_reason(_KEY + gap.where, gap.sentence)


# A worker that could not be measured although nothing was missing.


def tell_from_worker(place: Place, error: Exception) -> None:
    """Say why the workers of a loader are not measured: the first of them, for all."""
    with suppress(Exception):
        reason = f"{type(error).__name__}: {error}"
        if place is not None:
            folder, loader, _ = place
            with _file(Path(folder), loader).open("x", encoding="utf-8") as file:
                json.dump({"format": FORMAT, "reason": reason}, file)
        if sys.stderr is not None:  # `print` would take standard output in its place
            print(f"loaderscope: workers are not measured: {reason}", file=sys.stderr)


def told_by_worker(folder: Path, loader: int) -> str | None:
    """Why the workers of this loader were not measured; None where they were."""
    file = _file(folder, loader)
    try:
        return text(read_json(file), "reason") if file.exists() else None
    except (RunUnreadable, OSError):
        return "its workers said why, and it cannot be read"


def _file(folder: Path, loader: int) -> Path:
    return folder / f"loader{loader}.bare.json"


# What reports say.


def missing_figures(run: Run) -> tuple[str, ...]:
    """One sentence for each way in which the torch of this run kept figures from being measured."""
    found: dict[str, None] = {}
    for process in run.processes:
        for key, sentence in process.reasons.items():
            if key.startswith(_KEY):
                found[sentence] = None
        for loader in process.loaders:
            why = loader.bare or _silent(loader)
            if why is not None:
                version = f"torch {process.torch}" if process.torch else "This torch"
                found[
                    f"{version}: the workers of {loader.name} were not measured ({why}). Missing from these figures: "
                    f"{_all(INSIDE_WORKERS)} of this loader."
                ] = None
    return tuple(found)


def _silent(loader: LoaderRun) -> str | None:
    """Workers whose batches came without their times, and nobody knows why."""
    if loader.kind != "dataloader" or not loader.num_workers or "fetch" in loader.reasons or loader.folded.records:
        return None
    if not loader.batches.rows or (loader.batches["fetch_ns"] >= 0).any():
        return None
    return "their batches came without times"


def _all(figures: tuple[str, ...]) -> str:
    if figures == EVERYTHING:
        return "everything"
    *rest, last = figures
    return f"{', '.join(rest)} and {last}" if rest else last


def reasons_of_bare_worker(why: str | None) -> dict[str, Any]:
    """For the reasons of its loader."""
    return dict.fromkeys(INSIDE_WORKERS, f"workers are not measured: {why}") if why is not None else {}
