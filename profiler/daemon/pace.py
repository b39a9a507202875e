"""Limits to the cost of sampling: one for an expensive reading, one for the whole process."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Pace:
    """When a reading may be repeated, such that its cost stays below `share` of a core."""

    share: float
    next_ns: int = 0

    def due(self, now_ns: int) -> bool:
        return now_ns >= self.next_ns

    def paid(self, now_ns: int, cost_ns: int) -> None:
        """A reading begun at `now_ns` cost `cost_ns` of CPU."""
        self.next_ns = now_ns + int(cost_ns / self.share)


class Allowance:
    """Keeps the sampler's CPU time below `share` of a core on average, by waiting longer between
    ticks.

    CPU time that was not used is saved for an expensive tick, up to `burst_ns`.
    """

    def __init__(self, share: float, burst_ns: int, now_ns: int, cpu_ns: int) -> None:
        self.share = share
        self.burst_ns = burst_ns
        self.credit_ns = float(burst_ns)
        self._now_ns = now_ns
        self._cpu_ns = cpu_ns

    def wait_ns(self, interval_ns: int, longest_ns: int, now_ns: int, cpu_ns: int) -> int:
        """How long from one tick to the next, given the clock and the CPU time used so far."""
        earned = self.share * (now_ns - self._now_ns) - (cpu_ns - self._cpu_ns)
        self.credit_ns = min(self.burst_ns, self.credit_ns + earned)
        self._now_ns, self._cpu_ns = now_ns, cpu_ns
        return max(interval_ns, min(longest_ns, int(-self.credit_ns / self.share)))
