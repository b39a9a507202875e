"""What workers share, so that more of them do not bring more: a lock, other programs that work for
them, the kernel.

Waiting for a network, a disk or a timer overlaps with the waiting of other workers. Waiting for a
lock does not: where several workers were seen waiting for the same one, the time it is held follows
from how long they wait. Waiting for the interpreter, or for threads and programs of one's own that
compute, takes a core like computing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ..stage_model.wait_kinds import WaitKinds

OVERLAPS = ("disk", "network", "sleep", "fault", "child waits", "server waits")
COMPUTES = ("gil", "threads", "child")
SERVES = ("server",)
# In the kernel, from this part of CPU time on, it is not certain that workers do not hold each
# other up: an SQLite file opened for each sample, 0.4.
KERNEL_FROM = 0.3
# Less of the idle time is no reason to be unsure.
NOISE = 0.02


@dataclass(frozen=True)
class Sharing:
    """Parts of the idle time of fetching and collating, besides waiting for a core: `queued` was
    waiting for a lock that workers share, `computed` takes a core elsewhere, of `unknown` it is not
    known what it waits for. `held` is the part of the rest of a batch's work in which such a lock
    is held. `kernel` is the part of CPU time that may be held up in the kernel."""

    queued: float = 0.0
    computed: float = 0.0
    unknown: float = 0.0
    held: float = 0.0
    kernel: float = 0.0

    @property
    def certain(self) -> bool:
        return not (self.unknown or self.kernel)

    def at_worst(self, workers: int, idle_share: float) -> Sharing:
        """All that is unknown is waiting for one lock, which these workers wait for already.
        `idle_share`: of a batch's work."""
        own = 1 / max(1, workers)
        queued = self.queued + self.unknown * (1 - own)
        left = 1 - queued * idle_share
        held = self.held * (1 - self.queued * idle_share) + self.unknown * idle_share * own
        return replace(
            self,
            queued=queued,
            unknown=0.0,
            held=max(self.kernel, min(1.0, held / left)) if left > 0 else 1.0,
            kernel=0.0,
        )


def sharing_of(
    kinds: WaitKinds | None,
    workers: int,
    step_ns: float,
    work_ns: float,
    idle_ns: float,
    kernel: float = 0.0,
) -> Sharing:
    """Of batches that take `work_ns` to make, `idle_ns` of them idle, one each `step_ns`; `kernel`
    is the part of CPU time spent in the kernel."""
    kernel = kernel if workers < 2 and kernel >= KERNEL_FROM else 0.0
    if kinds is None or not idle_ns:
        return Sharing(unknown=float(idle_ns > 0), kernel=kernel)
    queued, computed, served = (kinds.share(*each) for each in (("shared lock",), COMPUTES, SERVES))
    unknown = 1 - queued - computed - served - kinds.share(*OVERLAPS)
    unknown = unknown if unknown > NOISE else 0.0
    held_ns = _held(workers, step_ns, kinds.shared_lock * work_ns)
    # A server answers one after another; workers that wait for it wait for each other too.
    own = 1 / max(1, workers)
    queued += served * (1 - own)
    held_ns += served * idle_ns * own
    held = min(1.0, held_ns / max(1.0, work_ns - queued * idle_ns))
    return Sharing(queued, computed, unknown, held, kernel)


def _held(workers: int, step_ns: float, waited_ns: float) -> float:
    """How long a lock is held a batch, where each of these workers waits for it that long. It finds
    the others there as often as they hold it or wait for it (Schweitzer's approximation)."""
    if workers < 2 or not waited_ns:
        return 0.0
    others = 4 * workers * step_ns / ((workers - 1) * waited_ns)
    return waited_ns / 2 * (math.sqrt(1 + others) - 1)
