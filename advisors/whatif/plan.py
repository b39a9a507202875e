"""A loop to simulate: its settings, and how the time of each stage changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .costs import StartMethod
from .device_work import Together


@dataclass(frozen=True)
class Plan:
    """The DataLoader's arguments, a factor on each stage's time (1.0: as measured), and for stages
    that took no time, a constant time in ns a batch."""

    num_workers: int
    prefetch_factor: int
    in_order: bool
    pin_memory: bool
    persistent_workers: bool
    start_method: StartMethod
    cpus: float  # effective cores
    together: Together | None = None  # None: no device that was timed
    factors: Mapping[str, float] = field(default_factory=dict)
    constants_ns: Mapping[str, float] = field(default_factory=dict)

    def factor(self, stage: str) -> float:
        return self.factors.get(stage, 1.0)

    def constant_ns(self, stage: str) -> float:
        return self.constants_ns.get(stage, 0.0)
