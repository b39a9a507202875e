"""Asking the samplers of a live run for stacks.

A burst is taken by itself once a run is steady and waits for its data, and whenever it is asked
for:

    nonce = request_burst(run.path)
    burst = wait_for_burst(run.path, nonce, timeout_s=30)    # None: nobody answered
"""

from __future__ import annotations

import json
import secrets
import time
from pathlib import Path

from ...base.atomic_write import write_atomically
from .request_file import REQUEST as REQUEST
from .stack_files import answer_to
from .stack_samples import StackCapture

POLL_S = 0.1


def request_burst(run_path: Path, native: bool = False, seconds: float | None = None) -> str:
    """Ask the samplers of a live run for a burst now; returns the name (nonce) by which the answer
    is known.

    `native`: with frames of compiled code, for which the processes are stopped for moments (at most
    2 s long); without it nothing is ever stopped. `seconds`: how long, 1 to 30; None for the usual
    length. Raises OSError where the run directory cannot be written. Nobody answers for a run that
    has ended.
    """
    nonce = secrets.token_hex(8)
    asked = {
        "native": bool(native),
        "seconds": None if seconds is None else float(seconds),
        "nonce": nonce,
    }
    write_atomically(Path(run_path) / REQUEST, json.dumps(asked))
    return nonce


def wait_for_burst(run_path: Path, nonce: str, timeout_s: float) -> StackCapture | None:
    """The burst that answers `nonce`, as soon as it is there; None if there is none after
    `timeout_s` seconds.

    A burst that could not be taken has no stacks and a `reason`. Of several hosts, the first to
    answer is taken.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        burst = answer_to(Path(run_path), nonce)
        if burst is not None or time.monotonic() >= deadline:
            return burst
        time.sleep(POLL_S)
