"""Asking the samplers of a live run for a burst of stacks, and waiting for it."""

from __future__ import annotations

import json
import secrets
import time
from pathlib import Path

from ...base.atomic_write import write_atomically
from ...base.tolerant import as_json
from .stack_files import answer_to, files_of
from .stack_samples import REQUEST, StackCapture, StackRequest

POLL_S = 0.1
# What a burst that is at work writes meanwhile (daemon/stack_capture/py_spy.py), and how long a
# report waits for its end: the sampler listens 20 times a second, and py-spy ends with its reading.
AT_WORK = "system-*/.stacks-*.txt"
SO_FAR_S, SO_FAR_POLL_S = 0.3, 0.01


def request_burst(run_path: Path, seconds: float | None = None) -> str:
    """Ask the samplers of a live run for a burst now; returns the name (nonce) of the answer.

    `seconds`: how long, 1 to 30; None for the usual
    length. Raises OSError where the run directory cannot be written. Nobody answers for a run that
    has ended.
    """
    asked = StackRequest(secrets.token_hex(8), seconds)
    write_atomically(run_path / REQUEST, json.dumps(as_json(asked)))
    return asked.nonce


def end_burst(run_path: Path) -> None:
    """Have the burst at work end, so that what it has seen can be read: returns as soon as it is
    there, after `SO_FAR_S` at the latest, and at once where none is at work. Never raises."""
    try:
        systems = {path.parent for path in run_path.glob(AT_WORK)}
        if not systems:
            return
        before = [files_of(system) for system in systems]
        asked = StackRequest(secrets.token_hex(8), so_far=True)
        write_atomically(run_path / REQUEST, json.dumps(as_json(asked)))
        deadline = time.monotonic() + SO_FAR_S
        while [files_of(system) for system in systems] == before and time.monotonic() < deadline:
            time.sleep(SO_FAR_POLL_S)
    except OSError:
        return  # a run that cannot be written has the stacks it has


def wait_for_burst(run_path: Path, nonce: str, timeout_s: float) -> StackCapture | None:
    """The burst that answers `nonce`, as soon as it is there; None if there is none after
    `timeout_s` seconds.

    A burst that could not be taken has no stacks and a `reason`. Of several hosts, the first to
    answer is taken.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        burst = answer_to(run_path, nonce)
        if burst is not None or time.monotonic() >= deadline:
            return burst
        time.sleep(POLL_S)
