"""Memory of a process in detail (USS, PSS): the more it costs, the less often it is read.

The kernel walks the page tables for it and holds the process's memory map meanwhile. On a process
of many GB that would cost the sampler its share of a core, and could delay the training. So at most
one process is read a tick, each at most every 2 s, all together below 0.3 % of a core, and none
whose walk is expected to take a quarter of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .pace import Pace
from .procfs import PAGE_BYTES

EVERY_NS = 2_000_000_000
SHARE = 0.003
LONGEST_NS = 250_000_000
# Measured at 30 to 50 ns a 4 KiB page; corrected by what the walks really take.
NS_A_PAGE = 50.0


class Turns:
    """Decides which process is read next. A process may be any hashable value."""

    def __init__(self, wall_ns: Callable[[], int], cost_ns: Callable[[], int]) -> None:
        self._wall_ns = wall_ns
        self._cost_ns = cost_ns
        self._all = Pace(0, SHARE)
        self._last: dict[object, int] = {}
        self.ns_a_page = NS_A_PAGE

    def choose(self, candidates: Sequence[tuple[object, int]]) -> object | None:
        """Of [(process, resident bytes)] the one that has waited longest and may be read now; None
        for none."""
        now, last = self._wall_ns(), {who: self._last.get(who, 0) for who, _ in candidates}
        if not self._all.due(now):
            return None
        self._last = last
        fit = [who for who, rss_bytes in candidates if not self.too_big(rss_bytes)]
        waiting = (who for who in fit if now - last[who] >= EVERY_NS)
        return min(waiting, key=last.__getitem__, default=None)

    def too_big(self, rss_bytes: int) -> bool:
        """Whether the walk is expected to take too long."""
        return rss_bytes / PAGE_BYTES * self.ns_a_page > LONGEST_NS

    def read(
        self, who: object, rss_bytes: int, walk: Callable[[], tuple[int, int]]
    ) -> tuple[int, int]:
        """(USS, PSS) in bytes from `walk()`, charged to `who`; what it raises passes through,
        charged as well."""
        begun, cost = self._wall_ns(), self._cost_ns()
        try:
            return walk()
        finally:
            cost = self._cost_ns() - cost
            self._last[who] = begun
            self._all.paid(begun, cost)
            pages = rss_bytes / PAGE_BYTES
            if pages > 4096:  # below 16 MiB the fixed part of the cost rules
                self.ns_a_page += 0.3 * (cost / pages - self.ns_a_page)
