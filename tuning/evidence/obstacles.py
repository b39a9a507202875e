"""Objects that other processes cannot use."""

import concurrent.futures
import io
import sys
import threading
from typing import Any

from ...profiler.guard.static_access import in_class, inherits, is_one_of, mro

_WRITERS = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom, io.FileIO)
_SHARED = (
    "multiprocessing.sharedctypes",
    "multiprocessing.managers",
    "multiprocessing.queues",
    "multiprocessing.connection",
)


def obstacle(value: Any, name: str) -> tuple[bool, str] | None:
    """(whether only forked processes cannot use this object, or else no other process can; why, in
    a sentence that calls it `name`). None if any process can."""
    kind = type(value)
    if is_one_of(kind, _WRITERS):
        return (False, f"{name} is a file that it may write to") if _writes(value) else None
    module_of = vars(type)["__module__"].__get__
    if any(module_of(each) in _SHARED for each in mro(kind)):
        return False, f"{name} is shared with other processes"
    if module_of(kind) == "sqlite3" and kind.__name__ in ("Connection", "Cursor"):
        return True, f"{name} is a connection of SQLite, which forked processes must not use"
    pool = inherits(kind, concurrent.futures.ThreadPoolExecutor)
    if inherits(kind, threading.Thread) or (pool and getattr(value, "_threads", None)):
        return True, f"{name} has threads, which forked processes lack"
    if _steps_on(value):
        return False, f"{name} is an iterator: processes do not share its place"
    return None


def _writes(value: Any) -> bool:
    if value.closed:
        return False
    if type(value) is io.FileIO:
        return any(mark in value.mode for mark in "wax+")
    inner = value.buffer if type(value) is io.TextIOWrapper else value.raw
    return is_one_of(type(inner), _WRITERS) and _writes(inner)


def _steps_on(value: Any) -> bool:
    """Whether it is an iterator whose place is hidden: one written in C, or a generator."""
    kind = type(value)
    if in_class(kind, "__next__") is None or inherits(kind, io.IOBase):
        return False
    torch = sys.modules.get("torch")
    of_torch = torch is not None and inherits(kind, torch.utils.data.dataloader._BaseDataLoaderIter)
    return in_class(kind, "__dict__") is None and not of_torch
