"""Iterators of torch's own that take turns behind one of ours, and what is known of each."""

from __future__ import annotations

from typing import Any

from ..profiler.base import torch_parts
from .later_workers import LaterWorkers
from .settings import Settings


class Pool:
    """An iterator of torch's own and its settings. `guest`: those of the user's code are others."""

    def __init__(self, iterator: Any, settings: Settings, guest: bool) -> None:
        self.iterator = iterator
        self.settings = settings
        self.guest = guest
        self.state: list[Any] = []  # of the data set, when it came to work
        self.shift = 0  # from the numbers of torch's tasks to those of the order's drawings

    @property
    def any_order(self) -> bool:
        """Whether its batches come in the order in which they are ready."""
        return self.settings.num_workers > 0 and not self.settings.in_order

    def under_way(self) -> set[int]:
        """The numbers of the drawings whose batches it has not given yet."""
        return {task + self.shift for task in torch_parts.tasks(self.iterator)}

    @property
    def step(self) -> Any:
        """What records it; None where nothing does."""
        return getattr(self.iterator, "_ls", None)

    @property
    def empty(self) -> bool:
        return not torch_parts.under_way(self.iterator)


class Coming:
    """A pool whose workers are being started. It has no tasks yet."""

    def __init__(self, pool: Pool, workers: LaterWorkers) -> None:
        self.pool, self.workers = pool, workers
        self.wanted = True  # since the last batch
        self.last_ns = 0  # when the last of them was started


class Over:
    """An iteration that has come to its end, of which another goes on with the workers."""

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    def __next__(self) -> Any:
        raise StopIteration

    def __len__(self) -> int:
        return len(self._iterator)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iterator, name)


def end(pool: Pool) -> None:
    if pool.step is not None:
        pool.step.left()
    if pool.settings.num_workers:
        pool.iterator._shutdown_workers()
