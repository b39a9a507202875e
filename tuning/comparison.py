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


class Comparison:
    """Of a pool that is at work for nobody yet: it makes batches that the loop has been given."""

    def __init__(self, pool: Pool, wanted: int) -> None:
        self._pool, self._wanted = pool, wanted
        self._expected: deque[bytes] = deque()
        self._begun = 0
        self._since_ns = now_ns()

    def handed(self, index: Any, batch: Any) -> None:
        """This batch of this index is about to reach the loop. Raises Unequal, or what making one
        raised."""
        self._compare()
        if (
            self._begun < self._wanted
            and not self._long
            and len(self._expected) < self._pool.most_tasks
        ):
            self._begun += 1
            self._expected.append(digest(batch))
            self._pool.make(index)

    @property
    def done(self) -> bool:
        """Whether enough batches were the same. Raises Unequal, or what making one raised."""
        if self._begun < self._wanted and not self._long:
            return False
        self._compare()
        return not self._expected

    def _compare(self) -> None:
        """Those that are made by now."""
        if not self._pool.fetches_here and not torch_parts.finished(self._pool.iterator):
            return
        while self._expected:
            if digest(self._pool.made()) != self._expected.popleft():
                raise Unequal("its batches are not those that the code's own settings make")

    @property
    def _long(self) -> bool:
        return self._begun >= min(FEWEST, self._wanted) and now_ns() - self._since_ns > LONG_NS


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
        number, first, self._last, self.took_ns = (
            self._handed[settings],
            self._last != settings,
            settings,
            0,
        )
        if number & (number - 1) and not first:
            return batch
        began_ns = now_ns()
        again = make(index)
        if again is None:
            return batch
        same = digest(again) == digest(batch)
        self.took_ns = now_ns() - began_ns
        if not same:
            raise Unequal("its batches are not those that the code's own settings make", again)
        return again

    def unneeded(self) -> None:
        """The code's own settings made this batch."""
        self._last, self.took_ns = None, 0
