"""`stacks-<n>.json`: one burst of stack samples, as the sampler writes it and every reader gets it
back."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from ...base.tolerant import Count, Share, Text

FORMAT = 1
MAX_DEPTH = 512
MAX_WAITS = 10_000
MAX_FILES = 64


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
    cpu_s: float | None = None
    ended_early: bool = False
    failures: tuple[str, ...] = ()
    package: Text | None = None
    processes: tuple[Any, ...] = ()
    frames: tuple[Any, ...] = ()
    waits: tuple[Any, ...] = ()
    waits_reason: Text | None = None
    stacks: tuple[StackRow, ...] = ()
    dropped: Count = 0
