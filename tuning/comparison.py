"""Whether other settings make the batches that the code's own make: some are made both ways, and
compared."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from ..profiler.base import torch_parts
from ..profiler.base.clock import now_ns
from .batches import digest
from .pools import Pool
from .settings import Settings

FEWEST, LONG_NS = 2, 1_000_000_000  # compared at least; after so long no more than those


class Unequal(Exception):
    """A batch that other settings made is not the one that the code's own make."""

    def __init__(self, *args: Any) -> None:
        super().__init__("its batches differ from those of the code's own settings", *args)


class PendingPool:
    """A pool that makes no batches for the loop yet. Its workers are started, then it makes batches
    that the loop has been given."""

    def __init__(self, pool: Pool, settings: Settings, compared: int) -> None:
        """`settings`: those that are wanted; a witness, which never makes any for the loop, has
        others. `compared`: the number of batches."""
        self.pool, self.settings = pool, settings
        self.wanted = True  # since the last batch
        self._expected: deque[bytes] = deque()
        self._left = compared
        self._fewest = max(0, compared - FEWEST)
        self._since_ns, self._last_ns = now_ns(), 0

    @property
    def ready(self) -> bool:
        """Whether all workers have started, and enough batches were the same. Raises Unequal, or
        what making one raised."""
        if not self.pool.started or self._more:
            return False
        self._compare()
        return not self._expected

    def handed(self, index: Any, batch: Any) -> None:
        """This batch of this index is about to reach the loop. Starts some more workers, in less
        than the time of one step and the start of one. Raises as `ready`."""
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
        """Those that are made by now."""
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
    """Ever fewer of the batches that other settings make for the loop are made again, the code's
    own way: of those that the same settings made in the epoch, the 1st, 2nd, 4th, 8th and so on,
    and the first after each change of them."""

    def __init__(self) -> None:
        self._handed: Counter[Settings] = Counter()
        self._last: Settings | None = None
        self.took_ns = 0  # making the last one again; 0 where it was not

    def checked(
        self, settings: Settings, index: Any, batch: Any, make: Callable[[Any], Any]
    ) -> Any:
        """The batch for the loop: where it was made again, that one. Raises Unequal with it where
        they differ. `make` gives the batch of an index as the code's own settings make it, or None
        where it cannot."""
        self._handed[settings] += 1
        number, first = self._handed[settings], self._last != settings
        self._last, self.took_ns = settings, 0
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
