"""One epoch's order of batches, drawn once, whoever makes them; and the loader as each of its iterators sees it."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator
from types import TracebackType
from typing import Any

from .settings import Settings
from .whole_batches import as_made, whole_batches

# Forked workers lack the threads that this process has, and may wait for one for ever: a batch that takes so long is an
# error, after which the loader's own settings make it.
STUCK_S = 60


class DrawnOrder:
    """What the sampler draws in one epoch. Iterators that take turns draw from the same one."""

    def __init__(self, source: Iterator[Any]) -> None:
        self._source = source
        self._again: deque[Any] = deque()
        self.drawn = 0
        self.waiting: dict[int, Any] = {}  # drawn, and not handed to the loop yet, by the number of the drawing
        self.exhausted = False
        self._raised: BaseException | None = None  # by the sampler
        self._where: TracebackType | None = None
        self._to_raise: BaseException | None = None

    def __iter__(self) -> DrawnOrder:
        return self

    def __next__(self) -> Any:
        if self._again:
            index = self._again.popleft()
        elif self._to_raise is not None:
            self._raised, self._to_raise = self._to_raise, None
            raise self._raised
        else:
            try:
                index = next(self._source)
            except StopIteration:
                self.exhausted = True
                raise
            except BaseException as error:
                # The sampler's own frames alone: those that make an iterator would keep it, half made, alive.
                self._raised, self._where = error, error.__traceback__ and error.__traceback__.tb_next
                raise
        self.waiting[self.drawn] = index
        self.drawn += 1
        return index

    @property
    def drained(self) -> bool:
        """Whether there is nothing left to draw."""
        return self.exhausted and not self._again

    @property
    def fails(self) -> bool:
        """Whether the sampler has failed, and the loop has not met that yet."""
        return self._to_raise is not None

    def raised(self, error: BaseException) -> bool:
        """Whether this is the sampler's own error, of which nothing is kept here then."""
        if error is not self._raised:
            return False
        self._raised = None
        return True

    def put_off(self, error: BaseException) -> None:
        """Who drew is not at work yet; whoever draws after what was given back meets this error of the sampler's."""
        self._to_raise = error.with_traceback(self._where)

    def handed(self, under_way: Container[int] = ()) -> None:
        """A batch was handed to the loop: the first of those that are waiting and not under way."""
        for number in self.waiting:
            if number not in under_way:
                del self.waiting[number]
                return

    def keep(self, count: int) -> None:
        """Only the last `count` of those drawn are still to come: others were lost to an error, as torch loses them."""
        while len(self.waiting) > count:
            del self.waiting[next(iter(self.waiting))]

    def give_back(self, kept: int) -> None:
        """All but the first `kept` of those waiting are drawn again, by another."""
        while len(self.waiting) > kept:
            self._again.appendleft(self.waiting.popitem()[1])


class Sampler:
    """Stands for a loader's sampler: torch asks it for an iterator, and may do so twice an epoch."""

    def __init__(self, sampler: Any, order: DrawnOrder | None = None) -> None:
        self._sampler = sampler
        self.order = order
        self._fixed = order is not None

    def __iter__(self) -> DrawnOrder:
        if self.order is None or not self._fixed:
            self.order = DrawnOrder(iter(self._sampler))
        return self.order

    def __len__(self) -> int:
        return len(self._sampler)


class StandIn:
    """A loader as torch's iterators see it: with these settings and this sampler, all else as it is."""

    def __init__(
        self, loader: Any, settings: Settings, sampler: Sampler, generator: Any, guest: bool, context: Any = None
    ) -> None:
        """Of a `guest`, which has not the settings of the user's code, torch does not say that it would have fewer
        workers: they are no wish of the user's. `context` makes its processes, in place of the loader's own. Raises
        NotArrays where whole batches are wanted and cannot be looked up."""
        workers = settings.num_workers
        if guest:
            self.check_worker_number_rationality = _say_nothing
        if context is not None:
            self.multiprocessing_context = context
        if settings.batched:
            self.dataset, self.collate_fn = whole_batches(loader), as_made
        self._loader = loader
        self._index_sampler = sampler
        self.generator = generator
        self.num_workers = workers
        self.prefetch_factor = settings.prefetch_factor if workers else None
        self.pin_memory = settings.pin_memory
        self.persistent_workers = settings.persistent_workers
        self.in_order = settings.in_order
        self.timeout = (loader.timeout or (STUCK_S if guest else 0)) if workers else 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def _say_nothing() -> None: ...
