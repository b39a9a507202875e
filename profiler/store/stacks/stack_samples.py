"""Stack samples as recorded: bursts of py-spy on main and workers, one file a
burst, next to the sampler's lanes.

The system sampler makes them, `SystemRun.bursts` holds them, `advisors.stacks.code_summary` says
what they mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta, Struct

from ...base.tolerant import Text

STAGES = ("index", "fetch", "collate", "pack", "pin", "wait", "compute", "idle", "other")


class Frame(Struct, frozen=True, array_like=True):
    """One frame. `line` is the one being executed, 0 if unknown; of compiled code, `file` is its
    source or library."""

    function: Text = "unknown"
    file: str = ""
    line: Annotated[int, Meta(ge=0, lt=1 << 31)] = 0
    native: bool = False


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
    native: bool
    why: str  # "steady" or "asked"
    frames: tuple[Frame, ...] = field(repr=False)
    stacks: tuple[Stack, ...] = field(repr=False)
    samples: Mapping[int, int]  # pid → samples taken of it
    gil: Mapping[int, float]
    reason: str | None = None
    waits_reason: str | None = None
