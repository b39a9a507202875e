"""Looking on while other settings than the code's make batches: whether these still depend on their
indices alone.

What speaks against it is raised in place of the batch, which the code's own settings then make.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any

from ..profiler.guard.error_origin import forgiving
from .batches import tensors_of, views
from .state import State
from .streams import Streams

FAR_NS = 20_000  # of looking at what is far, a batch


class Depends(Exception):
    """A batch depends on more than its indices."""


def reason_of(error: BaseException) -> str:
    """What it says; of one that a worker raised, torch puts the worker's traceback before that."""
    return str(error.args[0]).rstrip().rpartition("\n")[2].rpartition(f"{Depends.__name__}: ")[2]


class CollateInWorker:
    """In the place of a collate function, in workers that the code does not have."""

    def __init__(
        self, collate: Callable[[Any], Any], random: bool, data: State | None, strict: bool
    ) -> None:
        """`random`: drawing random numbers speaks against a batch. `data`: so does changing what
        was found so; in the first batch too where it is `strict`, which else may open what is
        opened late."""
        self._collate, self._random, self._data, self._strict = collate, random, data, strict
        self._streams: Streams | None = None
        self._before: list[Any] = []
        self._written = -1

    def __getstate__(self) -> dict[str, Any]:
        """For a worker that is not forked, which has objects of its own."""
        return {**vars(self), "_data": None}

    def __call__(self, samples: Any) -> Any:
        written = bytes_written()
        wrote = self._streams is not None and written > self._written >= 0
        batch = self._collate(samples)
        self._written = bytes_written()
        first = self._streams is None
        if self._strict and (wrote or self._written - written > _bytes_of_sharing(batch)):
            raise Depends("fetching writes to a file")
        if self._streams is None:
            self._streams = Streams()
        elif self._random and self._streams.look() != self._before:
            raise Depends("fetching draws random numbers, and other settings would draw others")
        if self._data is not None:
            self._look_at_data(batch, first)
        self._before = self._streams.look()
        return batch

    def _look_at_data(self, batch: Any, first: bool) -> None:
        assert self._data is not None
        changed = self._data.changed(FAR_NS)
        if changed is not None and first and not self._strict:
            self._data = self._data.again()
        elif changed is not None:
            raise Depends(f"fetching changes {changed}")
        if self._strict and views(batch, self._data):
            raise Depends(
                "its batches are views of the data: what the loop does to them it would do to the "
                "data"
            )


class FetchHere:
    """In the place of a fetcher's `fetch`, in the training process where the code has workers for
    that. A worker was shown to change nothing by it; the program's random numbers stay as if
    workers had fetched whatever comes."""

    def __init__(
        self, fetcher: Any, data: Callable[[], State | None], look: Callable[[], bool]
    ) -> None:
        """`data`: the state of the data set; `look`: whether there is time to look at it."""
        # Of the class: the attribute of this name is this very object.
        self._fetch, self._fetcher = type(fetcher).fetch, weakref.ref(fetcher)
        self._data, self._may_look = data, look
        self._streams = Streams()

    def __call__(self, index: Any) -> Any:
        before = self._streams.look()
        try:
            batch = self._fetch(self._fetcher(), index)
        finally:
            drawn = self._streams.look() != before
            if drawn:
                self._streams.put_back(before)
        if drawn:
            raise Depends("fetching draws random numbers, and other settings would draw others")
        data = self._data() if self._may_look() else None
        if data is not None and (changed := data.changed()) is not None:
            raise Depends(f"fetching changes {changed}")
        return batch


def _bytes_of_sharing(batch: Any) -> int:
    """Torch writes a byte for each tensor that it makes in shared memory."""
    return sum(1 for _ in tensors_of(batch, items=None))


def bytes_written() -> int:
    """What this thread has written so far, to files and pipes; -1 where that is not counted."""
    with forgiving(OSError, ValueError):
        handle = os.open("/proc/thread-self/io", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(os.read(handle, 512).split()[3])
        finally:
            os.close(handle)
    return -1
