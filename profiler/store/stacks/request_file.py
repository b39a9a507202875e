"""The file in a run directory by which a burst of stacks is asked for. The sampler looks for it at
each tick, so it does not load what asks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from ...base.errors import RunUnreadable
from ...base.tolerant import read_as

REQUEST = "stacks.request"
MAX_BYTES = 4096
MAX_SECONDS = 30


class StackRequest(Struct, frozen=True):
    """`seconds` is None for the usual length. `so_far` asks for nothing new: the burst at work is
    to end, with what it has."""

    nonce: Annotated[str, Meta(pattern=r"^[0-9a-zA-Z_-]{8,64}$")] = ""
    native: bool = False
    seconds: float | None = None
    so_far: bool = False


def read_request(path: Path) -> StackRequest | None:
    """The request, its length 1 to 30 whole seconds; None for a file that holds none. Never
    raises."""
    try:
        asked = read_as(StackRequest, path, max_bytes=MAX_BYTES)
    except RunUnreadable:
        return None
    if not asked.nonce:
        return None
    bounded = None if asked.seconds is None else max(1.0, min(MAX_SECONDS, asked.seconds))
    return StackRequest(asked.nonce, asked.native, bounded and math.ceil(bounded), asked.so_far)
