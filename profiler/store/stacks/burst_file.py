"""The two files by which a reader and the sampler exchange stacks: `stacks.request` asks for a
burst, `stacks-<n>.json` holds one. The sampler imports this, so it loads little."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from ...base.errors import RunUnreadable
from ...base.tolerant import Count, Share, Text, read_as

FORMAT = 1
MAX_DEPTH = 512
MAX_WAITS = 10_000
MAX_FILES = 64
REQUEST = "stacks.request"
MAX_REQUEST_BYTES = 4096
MAX_SECONDS = 30


class ProcessRow(Struct):
    """One process that was read. `worker` and `loader` are numbers, None for a training process;
    `gil` is the part of its samples in which it held the GIL."""

    pid: Count = 0
    owner: Count = 0
    worker: int | None = None
    loader: Count | None = None
    samples: Count = 0
    gil: Share | None = None


class StackRow(Struct, frozen=True, array_like=True):
    """One stack, as often as it was seen. `process` and `frames` are places in the file's lists,
    the outermost frame first; `waits` are (place, samples) of those samples of which it is known
    what the thread did."""

    process: Count
    thread: Annotated[str, Meta(max_length=100)]
    frames: Annotated[tuple[Count, ...], Meta(max_length=MAX_DEPTH)]
    samples: Annotated[int, Meta(gt=0)]
    waits: Annotated[tuple[tuple[Count, Count], ...], Meta(max_length=MAX_WAITS)] = ()


class BurstFile(Struct, frozen=True, kw_only=True):
    """Each of `processes` is a `ProcessRow`, of `frames` a `Frame`, of `waits` a `Wait`; `dropped`
    are samples of stacks there was no room for. `waits_reason`: why waits are missing."""

    format: int | None = None
    number: Count = 0
    t_begin_ns: Count = 0
    t_end_ns: Count = 0
    rate_hz: Annotated[float, Meta(ge=0)] = 0.0
    native: bool = False
    why: Literal["steady", "asked"] = "steady"
    nonce: str | None = None
    reason: Text | None = None
    ended_early: bool = False
    failures: tuple[str, ...] = ()
    package: Text | None = None
    processes: tuple[Any, ...] = ()
    frames: tuple[Any, ...] = ()
    waits: tuple[Any, ...] = ()
    waits_reason: Text | None = None
    stacks: tuple[StackRow, ...] = ()
    dropped: Count = 0


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
        asked = read_as(StackRequest, path, max_bytes=MAX_REQUEST_BYTES)
    except RunUnreadable:
        return None
    if not asked.nonce:
        return None
    bounded = None if asked.seconds is None else max(1.0, min(MAX_SECONDS, asked.seconds))
    return StackRequest(asked.nonce, asked.native, bounded and math.ceil(bounded), asked.so_far)
