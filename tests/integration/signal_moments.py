"""A loop in which a signal's handler raises: `python signal_moments.py WORKERS SEED COUNT`."""

from __future__ import annotations

import gc
import importlib
import json
import os
import random
import signal
import sys
import time
from contextlib import suppress
from typing import Any

import torch
from torch.utils.data import DataLoader

# Imported before: an error in the midst of any import may leave it locked.
from loaderscope import watch
from loaderscope.profiler.guard.helper_thread import is_late

FIXED = (0.0002, 0.001, 0.005, 0.02, 0.05, 0.1)
LAST_S = 0.3


class Preempted(Exception):
    """What a cluster's notice becomes in many programs."""


def plain(signum: int, frame: object) -> None:
    raise Preempted


def timeout(*_: object) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    raise TimeoutError


def leaving(*_: object) -> None:
    raise SystemExit(7)


class Handler:
    def __call__(self, signum: int, frame: object) -> None:
        raise Preempted


HANDLERS = {"plain": plain, "timeout": timeout, "leaving": leaving, "object": Handler()}


def tried(workers: int, after: float, name: str) -> dict[str, Any]:
    loader = DataLoader(torch.arange(60), batch_size=3, num_workers=workers)
    signal.signal(signal.SIGALRM, HANDLERS[name])
    seen = {"after": after, "handler": name, "ended": "never"}
    start = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        watch(loader)
        while time.monotonic() - start < 20:
            for _ in loader:
                pass
    except BaseException as error:
        seen["ended"] = type(error).__name__
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    while is_late() and time.monotonic() - start < 20:  # opening a run may take seconds
        time.sleep(0.01)
    watch(loader)
    seen["next"] = [len(batch) for batch in loader]
    seen["recorded"] = recorded(loader)
    seen["collecting"] = gc.isenabled()
    return seen


def recorded(loader: Any) -> int:
    """Batches of the last epoch in the run directory."""
    from loaderscope.profiler.record.iterate.watch import loader_place
    from loaderscope.profiler.record.session.session import flush
    from loaderscope.profiler.store.lanes.lane_reader import read_segment, segments

    flush()
    directory, index = loader_place(loader) or (None, 0)
    if directory is None:
        return -1
    epochs = [read_segment(path)[0] for path in segments(directory, f"epochs{index}")]
    return int(epochs[-1]["batches"][-1])


def main() -> None:
    workers, seed, count = map(int, sys.argv[1:])
    drawn = random.Random(seed)
    # Torch does so at a first batch, and drops what a handler raises meanwhile.
    with suppress(ImportError):
        importlib.import_module("torch.profiler._cupti_monitor")
    for number in range(count):
        after = FIXED[number] if number < len(FIXED) else drawn.uniform(0, LAST_S)
        # An OSError is dropped by multiprocessing where it asks how its workers do, bare too.
        name = drawn.choice(sorted(name for name in HANDLERS if not workers or name != "timeout"))
        sys.stdout.flush()
        child = os.fork()
        if not child:
            status = 1
            try:
                print(json.dumps(tried(workers, after, name)), flush=True)
                status = 0
            finally:
                os._exit(status)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
