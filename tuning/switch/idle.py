"""Pools that make no batches now."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...profiler.base import torch_parts
from ..evidence.settings import Settings
from .pools import Pool


class IdlePools:
    """Pools that wait for another turn, and pools whose workers were told to end."""

    def __init__(self) -> None:
        self.parked: dict[Settings, Pool] = {}
        self.released: list[Pool] = []

    def release(self, pool: Pool) -> None:
        """Tell its workers to end, without waiting."""
        if pool.step is not None:
            pool.step.left()
        if pool.settings.num_workers:
            torch_parts.dismiss(pool.iterator)
            self.released.append(pool)

    def release_parked(self, keeps: Callable[[Settings], bool]) -> None:
        """Release all pools whose settings are not kept."""
        for settings in [each for each in self.parked if not keeps(each)]:
            self.release(self.parked.pop(settings))

    def reap(self) -> None:
        """Close the pools whose workers have ended."""
        gone = [pool for pool in self.released if torch_parts.dismissed(pool.iterator)]
        for pool in gone:
            self.released.remove(pool)
            pool.iterator._shutdown_workers()

    def shut_down(self, others: Iterable[Pool], keep: Iterable[Pool]) -> None:
        """End these and all idle pools except the kept ones, and wait for their workers."""
        kept = list(keep)
        for pool in dict.fromkeys([*self.released, *others, *self.parked.values()]):
            if pool not in kept:
                pool.end()
        self.parked = {each: pool for each, pool in self.parked.items() if pool in kept}
        self.released.clear()
