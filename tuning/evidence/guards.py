"""Checks while batches are made: do they still depend on their indices alone?

If not, `Depends` is raised in place of the batch, which the code's own settings then make.
"""

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

from ...profiler.guard.error_origin import forgiving
from ...profiler.record.fetch_probe import opens
from .batches import tensors_of, views
from .shared_files import SharedHandles
from .state import State
from .streams import Streams

FAR_NS = 20_000  # of looking at what is far, a batch
DRAWS = "fetching draws random numbers, and other settings would draw others"
WRITES = "fetching writes to a file"
VIEWS = "its batches are views of the data: what the loop does to them it does to the data"


class Depends(Exception):
    """A batch depends on more than its indices."""


def reason_of(error: BaseException) -> str:
    """The message of an error, without the traceback that torch puts before a worker's."""
    return str(error.args[0]).rstrip().rpartition("\n")[2].rpartition(f"{Depends.__name__}: ")[2]


class CollateInWorker:
    """Replaces a collate function in workers that the code does not have."""

    def __init__(
        self, collate: Callable[[Any], Any], random: bool, data: State | None, strict: bool
    ) -> None:
        """`random`: drawing random numbers is an error. `data`: changing it is one too. A `strict`
        guard checks the first batch as well; another lets it open what is opened late."""
        self._collate, self._random, self._data, self._strict = collate, random, data, strict
        self._streams: Streams | None = None  # before the first batch
        self._before: list[Any] = []
        self._written = -1

    def __getstate__(self) -> dict[str, Any]:
        """A worker that is not forked has its own objects."""
        return {**vars(self), "_data": None}

    def __call__(self, samples: Any) -> Any:
        first = self._streams is None
        batch = self._collate_strictly(samples, first) if self._strict else self._collate(samples)
        if self._streams is None:
            self._streams = Streams()
        drawn = self._streams.look()
        if not first and self._random and drawn != self._before:
            raise Depends(DRAWS)
        self._before = drawn
        data = self._data
        if data is None:
            return batch
        changed = data.changed(FAR_NS)
        if changed is not None and first and not self._strict:
            self._data = data.again()
        elif changed is not None:
            raise Depends(f"fetching changes {changed}")
        if self._strict and views(batch, data):
            raise Depends(VIEWS)
        return batch

    def _collate_strictly(self, samples: Any, first: bool) -> Any:
        """Raises Depends if fetching or collating writes to a file."""
        before = bytes_written()
        wrote = not first and before > self._written >= 0
        batch = self._collate(samples)
        self._written = bytes_written()
        # Torch writes a byte for each tensor that it makes in shared memory.
        sharing = sum(1 for _ in tensors_of(batch, items=None))
        if wrote or self._written - before > sharing:
            raise Depends(WRITES)
        return batch


class _Fetch:
    """Replaces the `fetch` of a fetcher."""

    def __init__(self, fetcher: Any, streams: Streams) -> None:
        # Of the class: the attribute of this name is this very object.
        self._fetch, self._fetcher = type(fetcher).fetch, weakref.ref(fetcher)
        self._streams = streams
        fetcher.fetch = self


class FetchHere(_Fetch):
    """Fetches in the training process for a loader whose code has workers. A worker was shown to
    change nothing by it; the program's random numbers stay as they were."""

    def __init__(self, fetcher: Any, data: Callable[[], State | None]) -> None:
        """`data`: the state of the data set, or None while there is no time to check it."""
        super().__init__(fetcher, Streams())
        self._data = data

    def __call__(self, index: Any) -> Any:
        before = self._streams.look()
        try:
            batch = self._fetch(self._fetcher(), index)
        finally:
            drawn = self._streams.look() != before
            if drawn:
                self._streams.put_back(before)
        if drawn:
            raise Depends(DRAWS)
        data = self._data()
        if data is not None and (changed := data.changed()) is not None:
            raise Depends(f"fetching changes {changed}")
        return batch


class ObservedFetch(_Fetch):
    """Notes what one fetch does besides making the batch."""

    def __init__(self, fetcher: Any, streams: Streams, shared: SharedHandles | None) -> None:
        super().__init__(fetcher, streams)
        self._shared = shared
        self.drew = self.wrote = False
        self.opened: list[Any] = []
        self.hooked = opens.installed()
        self.why_not_forked: str | None = None

    def __call__(self, index: Any) -> Any:
        fetcher: Any = self._fetcher()
        del fetcher.fetch
        threads = {*threading.enumerate()}
        if self._shared is not None:
            self._shared.begins()
        drawn, written = self._streams.look(), bytes_written()
        try:
            with opens.also() as self.opened:
                return self._fetch(fetcher, index)
        finally:
            self.wrote = bytes_written() > written >= 0
            self.drew = self._streams.look() != drawn
            begun = {*threading.enumerate()} - threads
            if begun:
                names = ", ".join(sorted(each.name for each in begun)[:3])
                self.why_not_forked = (
                    f"fetching starts threads, which workers forked later would lack: {names}"
                )
            if self._shared is not None:
                self._shared.ended()


def bytes_written() -> int:
    """The bytes that this thread has written to files and pipes; -1 where they are not counted."""
    with forgiving(OSError, ValueError):
        handle = os.open("/proc/thread-self/io", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(os.read(handle, 512).split()[3])
        finally:
            os.close(handle)
    return -1
