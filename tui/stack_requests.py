"""Takes stacks of a live run for the dashboard, in a thread: a burst lasts seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..profiler.base.endable_thread import EndableThread
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


class Taker(EndableThread):
    """Takes stacks once, and says how it went."""

    def __init__(self, path: Path, done: Callable[[Taken], object], take: Take) -> None:
        super().__init__(name="loaderscope-stacks", daemon=True)
        self._path = path
        self._done = done
        self._take = take

    def work(self) -> None:
        try:
            burst = self._take(self._path)
        except LoaderscopeError as error:
            self._done(Taken(False, clean(error, 200)))
        except Exception as error:  # costs the stacks, never the screen
            self._done(Taken(False, f"no stacks: {type(error).__name__}: {clean(error, 200)}"))
        else:
            samples = plural(sum(burst.samples.values()), "sample", "samples")
            self._done(
                Taken(
                    True,
                    f"taken: {samples} of {plural(len(burst.samples), 'process', 'processes')}",
                )
            )
