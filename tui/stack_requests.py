"""Takes stacks of a live run for the dashboard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..profiler.base.errors import LoaderscopeError
from ..profiler.base.metadata import clean
from ..profiler.store.stacks.stack_samples import StackCapture
from ..reports.words.units import plural

Take = Callable[[Path], StackCapture]


@dataclass(frozen=True)
class Taken:
    """How it went, in words; `done` is None while it goes on."""

    done: bool | None
    said: str


def taken(path: Path, take: Take) -> Taken:
    """Take stacks once; a failure costs the stacks, never the screen."""
    try:
        samples = take(path).samples
    except LoaderscopeError as error:
        return Taken(False, clean(error, 200))
    except Exception as error:
        return Taken(False, f"no stacks: {type(error).__name__}: {clean(error, 200)}")
    counted = plural(sum(samples.values()), "sample", "samples")
    return Taken(True, f"taken: {counted} of {plural(len(samples), 'process', 'processes')}")
