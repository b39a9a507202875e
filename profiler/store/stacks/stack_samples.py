"""Stack samples: bursts of py-spy on main and workers, next to the sampler's lanes.

The system sampler writes `stacks-<n>.json` for each burst, by itself or because a reader has
written `stacks.request`. `SystemRun.bursts` holds them, and `advisors.stacks.code_summary` says
what they mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from ...base.tolerant import Count, Share, Text, read_or_empty

FORMAT = 1
MAX_DEPTH = 512
MAX_WAITS = 10_000
MAX_FILES = 64
REQUEST = "stacks.request"
MAX_REQUEST_BYTES = 4096
MAX_SECONDS = 30

STAGES = ("index", "fetch", "collate", "pack", "pin", "wait", "compute", "idle", "other")


class Frame(Struct, frozen=True, array_like=True):
    """One Python frame. `line` is the one being executed, 0 if unknown."""

    function: Text = "unknown"
    file: str = ""
    line: Annotated[int, Meta(ge=0, lt=1 << 31)] = 0


# What a thread does at a moment.
WAITS = (
    "compute",
    "core",  # ready to compute, and no core is free
    "disk",
    "network",
    "lock",
    "threads",  # its own, which compute
    "sleep",
    "child",  # a program that it runs, which computes
    "child waits",  # the same, which waits itself
    "gil",
    "fault",  # memory that must be brought or mapped
    "pipe",
    "server",  # another process of this host, through a socket, which computes
    "server waits",  # the same, which waits itself
    "process",  # of which nothing else is known
    "device",
    "unknown",
)


class Wait(Struct, frozen=True, array_like=True):
    """What a thread did when it was sampled: it computed, or waited for something.

    `kind` is one of `WAITS`. `what` is the file, the peer ("10.0.0.7:443") or the child's name, ""
    where it has none. `processes`: how many of the burst's processes waited for this lock; 0 for
    what is no lock, or one of a process's own.
    """

    kind: Text = "unknown"
    what: Text = ""
    processes: Annotated[int, Meta(ge=0, lt=1 << 31)] = 0


@dataclass(frozen=True)
class Stack:
    """One stack of one thread, as often as it was seen.

    `frames` are places in `StackCapture.frames`, outermost first, without the frames of torch,
    multiprocessing and ours that lead to the stage; empty where nothing is left. `stage`: "index"
    (main draws indices), "fetch", "collate", "pack" (a worker's feeder thread), "pin" (main's pin
    thread), "wait" (main inside `next()`, else), "compute" (main outside it), "idle" (a worker
    waiting for a task, a feeder thread for a batch) or "other" (any other thread). `waits`: what
    the thread did in those of the samples of which that is known, those of main threads.
    """

    pid: int
    thread: str
    stage: str
    frames: tuple[int, ...]
    samples: int
    waits: Mapping[Wait, int] = field(default_factory=dict)


@dataclass(frozen=True)
class StackCapture:
    """One burst, timed by the monotonic clock. `gil` maps a pid to the part of its samples in which
    a thread of it held the GIL. `reason` says why a burst has no stacks, `waits_reason` why it is
    not known what threads waited for.

    The GIL is looked at in a second, shorter recording right after that of the stacks: in how many
    of its samples any thread of the process held it, whether to compute or just about to let go of
    it. A pid is missing where that could not be read; one near 1 means that further threads of that
    process would wait for each other.
    """

    number: int
    t_begin_ns: int
    t_end_ns: int
    rate_hz: float
    why: str  # "steady" or "asked"
    frames: tuple[Frame, ...] = field(repr=False)
    stacks: tuple[Stack, ...] = field(repr=False)
    samples: Mapping[int, int]  # pid → samples taken of it
    gil: Mapping[int, float]
    reason: str | None = None
    waits_reason: str | None = None
    nonce: str | None = None  # of the request that it answers


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
    seconds: float | None = None
    so_far: bool = False


def read_request(path: Path) -> StackRequest | None:
    """The request, its length 1 to 30 whole seconds; None for a file that holds none. Never
    raises."""
    asked = read_or_empty(StackRequest, path, max_bytes=MAX_REQUEST_BYTES)
    if not asked.nonce:
        return None
    bounded = None if asked.seconds is None else max(1.0, min(MAX_SECONDS, asked.seconds))
    return StackRequest(asked.nonce, bounded and math.ceil(bounded), asked.so_far)
