"""Stack samples as recorded: bursts of py-spy on main and workers, kept beside the sampler's lanes, one file a burst.

`profiler.sampler` makes them, `SystemRun.bursts` holds them, `advisors.stacks.code` says what they mean. A burst is
taken by itself once a run is steady and waits for its data, and whenever it is asked for:

    nonce = request_burst(run.path)
    burst = wait_for_burst(run.path, nonce, timeout_s=30)    # None: nobody answered
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

REQUEST = "stacks.request"  # in the run directory; the sampler looks for it at each tick
POLL_S = 0.1

STAGES = ("fetch", "collate", "pack", "pin", "wait", "compute", "idle", "other")


@dataclass(frozen=True)
class Frame:
    """One frame. `line` is the one being executed, 0 if unknown; of compiled code, `file` is its source or library."""

    function: str
    file: str
    line: int
    native: bool = False


@dataclass(frozen=True)
class Stack:
    """One stack of one thread, as often as it was seen.

    `frames` are places in `Burst.frames`, outermost first, without the frames of torch, multiprocessing and ours that
    lead to the stage; empty where nothing is left. `stage`: "fetch", "collate", "pack" (a worker's feeder thread),
    "pin" (main's pin thread), "wait" (main inside `next()`, without fetching), "compute" (main outside it), "idle" (a
    worker waiting for a task, a feeder thread for a batch) or "other" (any other thread).
    """

    pid: int
    thread: str
    stage: str
    frames: tuple[int, ...]
    samples: int


@dataclass(frozen=True)
class Burst:
    """One burst, timed by the monotonic clock. `gil` maps a pid to the part of its samples in which a thread of
    it held the GIL. `reason` says why a burst has no stacks.

    The GIL is looked at in a second, shorter recording right after that of the stacks: in how many of its samples any
    thread of the process held it, whether to compute or just about to let go of it. A pid is missing where that could
    not be read; one near 1 means that further threads of that process would wait for each other.
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


def request_burst(run_path: Path, native: bool = False, seconds: float | None = None) -> str:
    """Ask the samplers of a live run for a burst now; returns the name (nonce) by which the answer is known.

    `native`: with frames of compiled code, for which the processes are stopped for moments (at most 2 s long); without
    it nothing is ever stopped. `seconds`: how long, 1 to 30; None for the usual length. Raises OSError where the run
    directory cannot be written. Nobody answers for a run that has ended.
    """
    from .folding import write_atomically

    nonce = secrets.token_hex(8)
    asked = {"native": bool(native), "seconds": None if seconds is None else float(seconds), "nonce": nonce}
    write_atomically(Path(run_path) / REQUEST, json.dumps(asked))
    return nonce


def wait_for_burst(run_path: Path, nonce: str, timeout_s: float) -> Burst | None:
    """The burst that answers `nonce`, as soon as it is there; None if there is none after `timeout_s` seconds.

    A burst that could not be taken has no stacks and a `reason`. Of several hosts, the first to answer is taken.
    """
    from .stack_files import answer_to

    deadline = time.monotonic() + timeout_s
    while True:
        burst = answer_to(Path(run_path), nonce)
        if burst is not None or time.monotonic() >= deadline:
            return burst
        time.sleep(POLL_S)
