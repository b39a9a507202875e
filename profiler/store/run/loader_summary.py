"""One loader of one process in totals: what is asked of every rank, where only a few are looked at
in detail."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import ValidationError, convert

from ...base.errors import RunUnreadable
from ...base.metadata import read_json
from ..summary import SUMMARY, SummaryFile, summed_up
from ..summary import LoaderSummary as LoaderSummary

if TYPE_CHECKING:
    from .run import LoaderRun


def summary_of(loader: LoaderRun) -> LoaderSummary:
    """The totals of what was read of this loader."""
    identity = loader.index, loader.name, loader.kind, loader.config
    return summed_up(*identity, loader.batches, loader.folded)


def read_summaries(directory: Path) -> tuple[LoaderSummary, ...] | None:
    """What the process of this folder has left when it ended; None where it has not, or where that
    is damaged: its lanes say the same."""
    try:
        return convert(read_json(directory / SUMMARY), SummaryFile).loaders
    except (RunUnreadable, ValidationError):
        return None
