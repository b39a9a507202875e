"""What workers share, so that more of them do not bring more: a lock, another program that works
for them.

Waiting for a network, a disk or a timer overlaps with the waiting of other workers. Waiting for a
lock that several workers were seen waiting for does not, nor for a server that computes. Waiting
for the interpreter, or for threads and programs of one's own that compute, takes a core like
computing.
"""

from __future__ import annotations

from typing import NamedTuple

from ..stage_model.wait_kinds import WaitKinds

OVERLAPS = ("disk", "network", "sleep", "fault", "child waits", "server waits")
COMPUTES = ("gil", "threads", "child")
ONE_BY_ONE = ("shared lock", "server")
# Less of the idle time is no reason to be unsure.
NOISE = 0.02


class Sharing(NamedTuple):
    """Parts of the idle time of fetching and collating, besides waiting for a core: `computed`
    takes a core elsewhere, `shared` does not overlap with that of other workers, of `unknown` it is
    not known what it waits for."""

    computed: float
    shared: float
    unknown: float


def sharing_of(kinds: WaitKinds | None) -> Sharing:
    """Without samples, nothing is known."""
    if kinds is None:
        return Sharing(0.0, 0.0, 1.0)
    computed, shared, apart = (kinds.share(*each) for each in (COMPUTES, ONE_BY_ONE, OVERLAPS))
    unknown = 1 - computed - shared - apart
    return Sharing(computed, shared, unknown if unknown > NOISE else 0.0)
