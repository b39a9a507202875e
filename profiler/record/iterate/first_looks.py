"""What is looked at once: a loader's parts when it joins a session, a batch of it, the first
batches of an epoch.

A `FirstLooks` lives from the beginning of an iteration until it has seen what it came for; the
steady path then holds None in its place. Nothing here raises: what fails is given up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ...base import batch_record
from ...guard.error_origin import is_ours
from ...guard.helper_thread import in_helper_thread
from ...store.lanes.lane import Lane
from ..inspect.digests import UNKNOWN, digest_of_batch, digest_of_indices, plain_indices
from ..inspect.inspect_batch import inspect_batch
from ..inspect.inspect_loader import TURNED_OFF, inspect_loader, inspection_wanted

# Of an iterable data set, so many batches of each worker have a digest.
FIRST_BATCHES = 2
# With `in_order=False` a slow worker's first batch comes after others' later ones; after so many it
# is given up.
LATE = 64


class Looked(Protocol):
    """What is needed of a loader's recorder."""

    facts: dict[str, Any]
    loader: Callable[[], Any] | None

    def write(self) -> None:
        """Bring the facts to the run directory."""


def look_at_parts(recorder: Looked) -> None:
    """Add to the recorder's facts what its loader is made of. The loader is held weakly; it may be
    gone."""
    if not inspection_wanted():
        recorder.facts.setdefault("reasons", {})["inspection"] = TURNED_OFF
        return
    loader = recorder.loader() if recorder.loader is not None else None
    if loader is not None:
        recorder.facts["inspection"] = inspect_loader(loader)


def first_looks(recorder: Looked, num_workers: int) -> FirstLooks | None:
    """The looks of an iteration that begins; None where the user wants none."""
    return FirstLooks(recorder, num_workers) if inspection_wanted() else None


class FirstLooks:
    """The looks one iteration still has to take."""

    __slots__ = (
        "_begun",
        "_digests",
        "_handed",
        "_indices",
        "_inspect",
        "_iterable",
        "_recorder",
        "_workers",
    )

    def __init__(self, recorder: Looked, num_workers: int) -> None:
        config = recorder.facts.get("config")
        kind = config.get("dataset_kind") if isinstance(config, dict) else None
        self._recorder = recorder
        self._workers = num_workers
        self._iterable = kind == "iterable"
        self._indices: list[int] | None = None
        self._begun = False
        self._handed = 0
        # How many batches still want a digest.
        wanted = FIRST_BATCHES * max(1, num_workers) if self._iterable else 1
        self._digests = wanted if kind is not None else 0
        self._inspect = "structure" not in recorder.facts.get("inspection", {})

    def drawn(self, indices: Any, number: int) -> None:
        """Batch `number` of the epoch has these indices; of an iterator found at work, the first
        seen is not 0."""
        if self._begun:
            return
        self._begun = True
        try:
            if number == 0 and not self._iterable:
                self._indices = plain_indices(indices)
            if number or not (self._iterable or self._indices):
                self._digests = 0
        except Exception as error:
            if not is_ours(error):
                raise
            self._digests = 0

    def recorded(self, lane: Lane, n: int, batch: Any) -> FirstLooks | None:
        """Record number `n` of the lane, of this batch, is about to be committed; returns what is
        left to look at."""
        try:
            if self._inspect:
                self._inspect = False
                in_helper_thread(lambda: self._look_at(batch))
            if self._digests:
                self._digest(lane, n, batch)
        except Exception as error:
            if not is_ours(error):
                raise
            return None
        return self if self._digests else None

    def _look_at(self, batch: Any) -> None:
        facts = self._recorder.facts
        facts["inspection"] = {
            **facts.get("inspection", {}),
            "structure": None,
            **inspect_batch(batch),
        }
        self._recorder.write()

    def _digest(self, lane: Lane, n: int, batch: Any) -> None:
        number = self._handed
        self._handed += 1
        if self._workers:
            (number,) = batch_record.TASK.get(lane.buf, lane.at(n))
        first = FIRST_BATCHES * max(1, self._workers) if self._iterable else 1
        if 0 <= number < first:
            digest = (
                digest_of_batch(batch) if self._iterable else digest_of_indices(self._indices or [])
            )
            if digest != UNKNOWN:
                batch_record.DIGEST.put(lane.buf, lane.at(n), digest)
            self._digests -= 1
        elif number < 0 or number >= first + LATE:
            self._digests = 0
