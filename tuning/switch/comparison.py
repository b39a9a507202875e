"""Whether other settings make the same batches as the code's own: some batches are made both
ways."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from ...profiler.base import torch_parts
from ...profiler.base.clock import now_ns
from ..evidence.batches import digest
from ..evidence.guards import Depends
from ..evidence.settings import Settings
from .pools import Pool

FEWEST, LONG_NS = 2, 1_000_000_000  # compared at least; after so long no more than those


class Unequal(Depends):
    """A batch that other settings made differs from the code's own."""

    def __init__(self, *args: Any) -> None:
        super().__init__("its batches differ from those of the code's own settings", *args)


class PendingPool:
    """A pool that makes no batches for the loop yet. Its workers start, then it remakes batches
    that the loop has had."""

    def __init__(self, pool: Pool, settings: Settings, compared: int) -> None:
        """`settings`: the wanted ones; a witness, which never works for the loop, has others.
        `compared`: how many batches to compare."""
        self.pool, self.settings = pool, settings
        self.wanted = True  # since the last batch
        self._expected: deque[bytes] = deque()
        self._left = compared
        self._fewest = max(0, compared - FEWEST)
        self._since_ns, self._last_ns = now_ns(), 0

    @property
    def ready(self) -> bool:
        """Whether all workers have started and enough batches were equal. Raises Unequal, or what
        making a batch raised."""
        if not self.pool.started or self._more:
            return False
        self._compare()
        return not self._expected

    def handed(self, index: Any, batch: Any) -> None:
        """This batch of this index is about to reach the loop. Starts more workers, for about as
        long as one step. Raises as `ready`."""
        workers = self.pool.workers
        if workers is not None and not workers.started:
            began_ns = now_ns()
            workers.start(began_ns - self._last_ns if self._last_ns else 0)
            self._last_ns = now_ns()
        if not self.pool.started:
            return
        self._compare()
        if self._more and len(self._expected) < max(1, self.pool.settings.ahead):
            self._left -= 1
            self._expected.append(digest(batch))
            self.pool.make(index)

    def _compare(self) -> None:
        """Compare the batches that are ready."""
        iterator = self.pool.iterator
        if self.pool.settings.num_workers and not torch_parts.finished(iterator):
            return
        while self._expected:
            if digest(self.pool.made()) != self._expected.popleft():
                raise Unequal

    @property
    def _more(self) -> bool:
        """Whether more batches are to be made."""
        long = self._left <= self._fewest and now_ns() - self._since_ns > LONG_NS
        return self._left > 0 and not long


class SpotChecks:
    """Some of the batches that other settings make for the loop are made again, the code's own way:
    the 1st, 2nd, 4th, 8th and so on of the same settings in an epoch, and the first after each
    change."""

    def __init__(self) -> None:
        self._handed: defaultdict[Settings, Iterator[int]] = defaultdict(lambda: count(1))
        self._numbers: Iterator[int] = iter(())  # of the last settings' batches
        self._last: Settings | None = None
        self.took_ns = 0  # making the last one again; 0 where it was not

    def checked(
        self, settings: Settings, index: Any, batch: Any, make: Callable[[Any], Any]
    ) -> Any:
        """The batch for the loop, which is the remade one if there is one. Raises Unequal with it
        if they differ. `make` gives the code's own batch of an index, or None where it cannot."""
        first = settings is not self._last
        if first:
            self._last, self._numbers = settings, self._handed[settings]
        number, self.took_ns = next(self._numbers), 0
        if number & (number - 1) and not first:
            return batch
        began_ns = now_ns()
        again = make(index)
        if again is None:
            return batch
        same = digest(again) == digest(batch)
        self.took_ns = now_ns() - began_ns
        if not same:
            raise Unequal(again)
        return again

    def unneeded(self) -> None:
        """The code's own settings made this batch."""
        self._last, self.took_ns = None, 0
