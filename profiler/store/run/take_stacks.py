"""Requests a burst of stacks of a live run and waits for it, for the command line and the
dashboard."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from ...base.errors import UsageError
from ...base.liveness import Liveness
from ...base.metadata import clean
from ..stacks.stack_request import request_burst, wait_for_burst
from ..stacks.stack_samples import StackCapture
from .follow import state_of
from .run import Run

# A burst of the usual length, py-spy's own start, and a sampler that is busy with another burst.
WAIT_S = 40.0
LOOK_EVERY_S = 2.0  # how often to look whether the run lives, and how long to wait after its end


def take_stacks(path: Path, seconds: float | None = None) -> StackCapture:
    """A burst taken now of the run in this directory, which has stacks. `seconds` as
    `request_burst` has.

    Raises UsageError, with the reason in a sentence, where the run is not live, its directory
    cannot be written, its sampler does not answer, or nothing could be seen.
    """
    if state_of(path, Liveness()) != "live":
        raise UsageError("stacks can be taken of a live run only")
    try:
        nonce = request_burst(path, seconds)
    except OSError as error:
        raise UsageError(
            f"{clean(path)} cannot be written: {clean(error.strerror or error)}"
        ) from error
    deadline = time.monotonic() + WAIT_S + (seconds or 0.0)
    live = True
    while (burst := wait_for_burst(path, nonce, LOOK_EVERY_S)) is None:
        if not live:
            raise UsageError("the run ended before its stacks were taken")
        live = state_of(path, Liveness()) == "live"
        if live and time.monotonic() >= deadline:
            raise UsageError("no stacks came: the system sampler of this run does not answer")
    if not burst.stacks:
        raise UsageError(
            f"no stacks could be taken: {clean(burst.reason or 'nothing was seen running')}"
        )
    return burst


def with_burst_alone(run: Run, burst: StackCapture) -> Run:
    """The run as if this burst were the only one, so that it is not mixed with earlier ones."""
    key = burst.number, burst.t_begin_ns
    systems = [
        replace(each, bursts=tuple(b for b in each.bursts if (b.number, b.t_begin_ns) == key))
        for each in run.systems
    ]
    if systems and not any(system.bursts for system in systems):
        systems[0] = replace(systems[0], bursts=(burst,))  # newer than what was read of the run
    return replace(run, systems=tuple(systems))
