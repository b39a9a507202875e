"""One epoch's order of batches, drawn once from the loader's sampler.

A sampler may depend on the loop: on weights that a training writes, on a shared generator, on a
batch size that grows. So indices are drawn when the code's own settings would draw them: with
workers, `num_workers × prefetch_factor` batches at the beginning and one more with each batch
handed over; without, one when a batch is asked for. They are drawn earlier only from a sampler of
torch's own that depends on nothing in between.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from ..evidence.evidence import Evidence


class Order:
    """What the sampler draws in one epoch. All pools of the epoch take their indices from here."""

    def __init__(self, source: Iterator[Any], ahead: int, evidence: Evidence) -> None:
        """`ahead`: how many batches the code's own settings draw before they are asked for.
        `evidence` allows early draws."""
        self._source, self._ahead, self._evidence = source, ahead, evidence
        self._ready: deque[Any] = deque()  # drawn or given back, and not taken
        self._early: deque[Exception | None] = deque()  # what draws raised that are not due yet
        self._due = 0  # draws that the code's own settings would have made by now
        self._limit = ahead
        self.waiting: deque[Any] = deque()  # taken, and not handed to the loop yet
        self.handed_over = 0
        self.exhausted = False
        self._raised: BaseException | None = None  # by the sampler
        self._where: TracebackType | None = None
        self._to_raise: BaseException | None = None

    # As pools take indices.

    def __iter__(self) -> Order:
        return self

    def __next__(self) -> Any:
        """The next index. Raises what the sampler raises, and StopIteration if there is none, or
        none yet."""
        if not self._ready:
            if self._to_raise is not None:
                self._raised, self._to_raise = self._to_raise, None
                raise self._raised
            while self._due < self._limit and not self._ready:
                self._draw()  # which may have been done early
            if (
                not self._ready
                and self._due
                and not self.exhausted
                and not self.ends_soon
                and self._evidence.draws_early(self._due + len(self._early))
            ):
                self._draw_early()  # never the first, which begins the epoch's order
            if not self._ready:
                raise StopIteration
        index = self._ready.popleft()
        self.waiting.append(index)
        return index

    # As the loop goes on.

    def asked(self, guest: bool) -> None:
        """The loop asks for a batch. It is made by a guest, or by the code's own settings, whose
        iterator draws itself. Raises what the sampler raises."""
        self._limit = self.handed_over + 1 + self._ahead
        if not self._ahead and (guest or self._early):
            self.catch_up()

    def catch_up(self) -> None:
        """Draw what the code's own settings would have drawn by now. Raises what the sampler
        raises."""
        while self._due < self._limit:
            try:
                self._draw()
            except StopIteration:
                continue  # as with workers, which ask again with each batch

    def handed(self) -> Any:
        """Hand the first waiting batch to the loop. Returns its index."""
        self.handed_over += 1
        return self.waiting.popleft() if self.waiting else None

    # What is left.

    @property
    def drained(self) -> bool:
        """Whether nothing is left to draw."""
        return self.exhausted and not self._ready and not self._early

    @property
    def ends_soon(self) -> bool:
        """Whether an early draw found the end or an error, which the code's own settings would not
        know yet."""
        return bool(self._early) and self._early[-1] is not None

    @property
    def over(self) -> bool:
        """Whether no other pool should begin to draw: nothing is left, or the loop is about to meet
        an error of the sampler."""
        return self.drained or self.ends_soon or self._to_raise is not None

    @property
    def ready(self) -> bool:
        """Whether an index can be taken without a draw."""
        return bool(self._ready)

    def give_back(self, kept: int) -> None:
        """Let another pool take all waiting indices but the first `kept`."""
        while len(self.waiting) > kept:
            self._ready.appendleft(self.waiting.pop())

    def keep(self, count: int) -> None:
        """Keep the last `count` waiting indices: the others were lost to an error, as in torch."""
        while len(self.waiting) > count:
            self.waiting.popleft()
            self.handed_over += 1  # the loop has had its error instead

    # Errors of the sampler.

    def raised(self, error: BaseException) -> bool:
        """Whether the sampler raised this error, which is forgotten then."""
        if error is not self._raised:
            return False
        self._raised = None
        return True

    def put_off(self, error: BaseException) -> None:
        """Raise this error of the sampler later, after the indices that were given back."""
        self._to_raise = error.with_traceback(self._where)

    # Drawing.

    def _draw(self) -> None:
        self._due += 1
        if self._early:
            error = self._early.popleft()
            if error is None:
                return
            self._note(error)
            try:
                raise error
            finally:
                del error  # or this frame and the error would keep each other
        try:
            index = next(self._source)
        except BaseException as error:
            self._note(error)
            raise
        self._ready.append(index)

    def _draw_early(self) -> None:
        try:
            self._ready.append(next(self._source))
            self._early.append(None)
        except StopIteration:
            self._early.append(StopIteration())  # without the frames in which it was met
        except Exception as error:
            self._early.append(error)

    def _note(self, error: BaseException) -> None:
        if isinstance(error, StopIteration):
            self.exhausted = True
        else:
            # The sampler's own frames alone: those that make an iterator would keep it, half made,
            # alive.
            self._raised, self._where = error, error.__traceback__ and error.__traceback__.tb_next
