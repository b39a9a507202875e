"""Runs in the process of a script that is tried: reports its batches, and pauses it between turns.

Nothing here ends the script. A side that is no longer needed is killed from outside. An exception
would run the script's `finally` and `except KeyboardInterrupt`, where trainers save checkpoints and
upload logs.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from ..profiler.base import torch_parts
from ..profiler.record.iterate.imports import after_import

VARIABLE = "LOADERSCOPE_TRY"  # the settings of a side, as JSON
# torch's default_rng_seed_val. A program that still has it has set no seed.
SEED = 67280421310721


def at_start() -> None:
    """Called before the script's first line. Imports come from the copy. Random streams that the
    script does not seed begin alike on both sides."""
    settings = json.loads(os.environ[VARIABLE])
    _move_imports(settings["root"], settings["copy"])
    random.seed(SEED)
    after_import("numpy", _seed_numpy)
    after_import("torch", lambda: sys.modules["torch"].manual_seed(SEED) and None)


def _seed_numpy() -> None:
    import numpy as np
    from numpy.random import bit_generator

    np.random.seed(SEED % 2**32)
    drawn = random.Random(SEED)
    # Generators without a seed take theirs from here.
    if hasattr(bit_generator, "randbits"):
        bit_generator.randbits = drawn.getrandbits


def _move_imports(root: str, copy: str) -> None:
    """An editable installation is on the path, or in the table of a finder."""

    def moved(path: Any) -> Any:
        return copy + path[len(root) :] if isinstance(path, str) and _within(path, root) else path

    sys.path[:] = map(moved, sys.path)
    for finder in sys.meta_path:
        table = getattr(sys.modules.get(getattr(finder, "__module__", "")), "MAPPING", None)
        if isinstance(table, dict):
            table.update({name: moved(path) for name, path in table.items()})


def _within(path: str, root: str) -> bool:
    """Whether a path belongs to the project, and not to a Python installed in its folder."""
    here = path == root or path.startswith(root + os.sep)
    return here and not path.startswith(sys.prefix + os.sep) and "site-packages" not in path


def begin() -> None:
    """Hook the iterators of DataLoaders, in the first rank only, and not in workers."""
    if os.environ.get("RANK", "0") != "0" or multiprocessing.current_process().daemon:
        return
    gate = Gate(json.loads(os.environ[VARIABLE]))
    for kind in (torch_parts.TORCH, torch_parts.TORCHDATA):
        for name in (kind.single, kind.multi):
            after_import(kind.module, partial(_hook, kind.module, name, gate))


def _hook(module: str, name: str, gate: Gate) -> None:
    made = getattr(sys.modules[module], name)
    bare = made._next_data

    def _next_data(iterator: Any) -> Any:
        return gate.step(iterator, bare)

    made._next_data = _next_data


class Gate:
    """Lets so many batches pass through `next()` as the trial's process allows."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._thread = threading.local()
        self._socket: socket.socket | None = None
        self._orders: Any = None  # from the trial's process, a line each
        self._ignored = False  # the trial listens to another rank or process
        self._remaining = 0
        self._go: dict[str, Any] = {"compare": False}
        self._began = self._comparing_s = 0.0

    def step(self, iterator: Any, bare: Callable[[Any], Any]) -> Any:
        """`next()`, when the trial's process allows it; at once in a forked worker, and in a loader
        that another loader reads from."""
        inside = getattr(self._thread, "inside", False)
        if inside or self._ignored or os.getpid() != self._pid:
            return bare(iterator)
        with self._lock:
            if self._remaining <= 0 or time.monotonic() > self._began + self._go["most_s"]:
                self._wait(iterator)
            if getattr(iterator, "_num_yielded", 1) == 0:  # also of one that begins anew
                self._send("begin", _lengths(iterator))
        self._thread.inside = True
        try:
            batch = bare(iterator)
        except StopIteration:
            self._send("end", True)
            raise
        except BaseException as error:
            self._send("raised", f"{type(error).__name__}: {error}")
            raise
        finally:
            self._thread.inside = False
        with self._lock:
            self._remaining -= 1
            if self._go["compare"]:
                before = time.monotonic()
                self._compare(batch)
                self._comparing_s += time.monotonic() - before
        return batch

    def _compare(self, batch: Any) -> None:
        from .fingerprint import fingerprint

        self._send("batch", fingerprint(batch, self._settings["copy"], self._settings["root"]))

    def _wait(self, iterator: Any) -> None:
        """Report the end of the turn, and wait for the next."""
        if self._socket is not None:
            _synchronize()
            self._send("done", time.monotonic() - self._began - self._comparing_s)
        else:
            self._connect(iterator)
            if self._ignored:
                return
        line = self._orders.readline()
        if not line:
            os._exit(1)  # the trial has ended
        self._go = json.loads(line)
        self._remaining = self._go["batches"]
        self._began, self._comparing_s = time.monotonic(), 0.0

    def _connect(self, iterator: Any) -> None:
        import torch

        made = socket.socket(socket.AF_UNIX)
        made.settimeout(None)
        ranks = torch.distributed
        another = ranks.is_available() and ranks.is_initialized() and ranks.get_rank()
        self._ignored = bool(another or made.connect_ex("\0" + self._settings["socket"]))
        if self._ignored:
            return
        self._socket, self._orders = made, made.makefile("rb")
        ahead = getattr(iterator, "_num_workers", 0) * (
            getattr(iterator, "_prefetch_factor", 0) or 0
        )
        elsewhere = [
            name
            for name, module in list(sys.modules.items())
            if _within(getattr(module, "__file__", None) or "", self._settings["root"])
            and name.partition(".")[0] != __name__.partition(".")[0]
        ]
        seeded = torch.initial_seed() != SEED
        self._send("hello", {"ahead": ahead, "seeded": seeded, "elsewhere": elsewhere})

    def _send(self, what: str, said: Any) -> None:
        with self._lock:
            if self._socket is not None:
                self._socket.sendall(json.dumps([what, said]).encode() + b"\n")


def _lengths(iterator: Any) -> list[int | None]:
    """Batches and samples of an epoch, None if unknown."""
    sampler: Any = getattr(iterator, "_index_sampler", None)
    return [_length(sampler), _length(getattr(sampler, "sampler", None))]


def _length(sampler: Any) -> int | None:
    try:
        return len(sampler)
    except Exception:
        return None


def _synchronize() -> None:
    """Work that the device still has to do belongs to the turn."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    with suppress(Exception):
        if cuda is not None and cuda.is_initialized():
            cuda.synchronize()
