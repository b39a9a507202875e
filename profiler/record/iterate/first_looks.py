"""What is looked at once: a loader's parts in a session, one of its batches, and the first batches
of an epoch.

A `FirstLooks` lasts until it has seen enough; after that the iteration holds None in its place.
Nothing here raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...base import batch_record
from ...guard.error_origin import forgiving
from ...guard.helper_thread import in_helper_thread
from ...store.lanes.lane import Lane
from ..inspect.digests import UNKNOWN, digest_of_batch, digest_of_indices, plain_indices
from ..inspect.inspect_batch import inspect_batch
from ..inspect.inspect_loader import TURNED_OFF, inspect_loader, inspection_wanted
from ..inspect.inspect_source import iterated, loop_at

if TYPE_CHECKING:
    from .recorder import Recorder

# The batches of each worker that get a digest, for an iterable data set.
FIRST_BATCHES = 2
# With `in_order=False` a slow worker's first batch comes late. This many batches later it is given
# up.
LATE = 64


def look_at_parts(recorder: Recorder) -> None:
    """Add to the recorder's facts what its loader is made of, if the loader still exists."""
    if not inspection_wanted():
        recorder.reasons["inspection"] = TURNED_OFF
        return
    loader = recorder.loader()
    if loader is not None:
        found = recorder.facts["inspection"] = inspect_loader(loader)
        with forgiving():
            if recorder.iterated_at is not None and (loop := loop_at(*recorder.iterated_at)):
                found["loop"] = loop
                if (name := iterated(loop)) is not None:
                    recorder.config["variable"] = name


class FirstLooks:
    """The looks one iteration still has to take."""

    def __init__(self, recorder: Recorder, num_workers: int) -> None:
        kind = recorder.config.get("dataset_kind")
        self._recorder = recorder
        self._workers = num_workers
        self._iterable = kind == "iterable"
        self._indices: list[int] | None = None
        self._begun = False
        self._handed = 0
        # The batches that get a digest, and how many of them are to come.
        self._first = FIRST_BATCHES * max(1, num_workers) if self._iterable else 1
        self._digests = self._first if kind is not None else 0
        self._inspect = "structure" not in recorder.facts.get("inspection", {})

    def drawn(self, indices: Any, number: int) -> None:
        """Batch `number` of the epoch has these indices. In an adopted iterator the first number
        seen is not 0."""
        if self._begun:
            return
        self._begun = True
        with forgiving():
            if number == 0 and not self._iterable:
                self._indices = plain_indices(indices)
        if number or not (self._iterable or self._indices):
            self._digests = 0

    def recorded(self, lane: Lane, n: int, batch: Any) -> FirstLooks | None:
        """Record `n` of the lane is about to be committed. Returns self if there is more to do."""
        with forgiving():
            if self._inspect:
                self._inspect = False
                in_helper_thread(lambda: self._look_at(batch))
            if self._digests:
                self._digest(lane, n, batch)
            return self if self._digests else None
        return None

    def _look_at(self, batch: Any) -> None:
        facts = self._recorder.facts
        found = {"structure": None, **inspect_batch(batch)}
        facts["inspection"] = {**facts.get("inspection", {}), **found}
        self._recorder.write()

    def _digest(self, lane: Lane, n: int, batch: Any) -> None:
        number = self._handed
        self._handed += 1
        if self._workers:
            (number,) = batch_record.TASK.get(lane.buf, lane.at(n))
        if 0 <= number < self._first:
            digest = (
                digest_of_batch(batch) if self._iterable else digest_of_indices(self._indices or [])
            )
            if digest != UNKNOWN:
                batch_record.DIGEST.put(lane.buf, lane.at(n), digest)
            self._digests -= 1
        elif number < 0 or number >= self._first + LATE:
            self._digests = 0
