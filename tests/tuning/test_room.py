"""A setting that may not fit is not tried."""

from __future__ import annotations

import os
from math import inf

import pytest

from loaderscope.tuning.evidence.settings import Settings
from loaderscope.tuning.room import LEAST_WORKER_BYTES, Room, room_left, why_no_room, worker_bytes

GB = 1e9
WORKER, BATCH, ROOM = 0.5 * GB, (10_000_000, 2), Room(8 * GB, 4 * GB, 1000)


@pytest.mark.parametrize(
    ("settings", "room", "said"),
    [
        (Settings(4), ROOM, None),
        (Settings(8), ROOM, "of memory"),  # half of what is left is for others
        (Settings(4, 8), Room(8 * GB, 0.4 * GB, 1000), "/dev/shm"),
        (Settings(4, 8), Room(8 * GB, 4 * GB, 120), "files open"),
        (Settings(4), Room(inf, inf, inf), None),
        (Settings(0), Room(0, 0, 0), None),
    ],
)
def test_what_may_not_fit(settings: Settings, room: Room, said: str | None) -> None:
    found = why_no_room(settings, WORKER, BATCH, room)
    assert found is None if said is None else said in str(found)


def test_what_is_left_here_is_known() -> None:
    room = room_left()
    assert 1e6 < room.memory_bytes < inf
    if os.path.isdir("/dev/shm"):
        assert room.shared_bytes < inf
    assert worker_bytes([os.getpid()], forked=True) > 1e6
    assert worker_bytes([], forked=True) >= LEAST_WORKER_BYTES
    assert worker_bytes([2**22 + 1], forked=False) >= LEAST_WORKER_BYTES
