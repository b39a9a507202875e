"""What the sampler needs of the machine's GPUs, whoever tells of them."""

from __future__ import annotations

import time

from ..base.facts import GpuFacts
from .pace import Pace

# A reading is cheap on most machines and dear on some (many devices, no persistence mode).
SHARE = 0.004


class Devices:
    """The GPUs of this machine."""

    def __init__(self) -> None:
        self._pace = Pace(0, SHARE)

    def facts(self) -> list[GpuFacts]:
        """What does not change, a device. Never raises."""
        raise NotImplementedError

    def rows(self, now_ns: int) -> list[tuple[int, ...]]:
        """The fields of `gpu` after t_ns, a device; empty when it is too early after a dear
        reading. Never raises."""
        if not self._pace.due(now_ns):
            return []
        begun = time.thread_time_ns()
        rows = self.read()
        self._pace.paid(now_ns, time.thread_time_ns() - begun)
        return rows

    def read(self) -> list[tuple[int, ...]]:
        """The same, now. A card that sleeps has no row."""
        raise NotImplementedError
