"""The hottest path has two forms: compiled (`_native`), and the Python that does the same a few times slower.

The extension is an option: a wheel without it, another platform or a Python without a GIL get the Python form, and so
does `LOADERSCOPE_PURE=1`. Both are tested. This module says which is in use, and has the three types whose fields both
forms share: compiled, these are C numbers that C reads and writes without making objects.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..base.schema import Schema

PURE_VARIABLE = "LOADERSCOPE_PURE"

# The clock that the extension reads; `clock.now_ns` must be the same.
_CLOCK = "clock_gettime(CLOCK_MONOTONIC)"


def load(environ: Mapping[str, str] = os.environ) -> tuple[Any, str]:
    """(the extension, "") or (None, why the Python form is used)."""
    if environ.get(PURE_VARIABLE, "0") not in ("", "0"):
        return None, f"{PURE_VARIABLE} is set"
    if "t" in getattr(sys, "abiflags", ""):
        return None, "this Python has no GIL"
    if time.get_clock_info("monotonic").implementation != _CLOCK:
        return None, "this platform has another clock"
    try:
        from . import _native
    except ImportError as error:
        return None, f"the extension is not there ({error})"
    return _native, ""


native, why_python = load()


def records(header_bytes: int, schema: Schema, sampling: tuple[int, int, int]) -> Any:
    """The extension, ready to write records of this schema; None where the Python form must."""
    fields = {field.name: (field.code, schema.offset(field.name)) for field in schema.fields if field.count == 1}
    try:
        if native is not None:
            native.records(header_bytes, schema.size, fields, *sampling)
    except ValueError:
        return None
    return native


def envelopes(times: str, sent: str, mark: bytes, seal: bytes, every: int, at_first: int, always_ns: int) -> Any:
    """The extension, ready to make and open envelopes of these struct formats; None where the Python form must."""
    try:
        if native is not None:
            native.envelopes(times, sent, mark, seal, every, at_first, always_ns)
    except ValueError:
        return None
    return native


class BatchTimings:
    """The clock readings of the batch being made, and what else each batch's record needs at hand.

    `detailed` asks for CPU time and single samples too; `special` is set where a record needs more than its head.
    """

    __slots__ = (
        "detailed",
        "device",
        "drawn",
        "envelope",
        "epoch",
        "lane",
        "looks",
        "samples",
        "special",
        "t_collate",
        "t_collated",
        "t_cpu_collate",
        "t_cpu_fetch",
        "t_fetch",
        "t_index",
        "taken",
        "tasks",
    )

    def __init__(self) -> None:
        self.detailed = self.special = True
        self.t_fetch = self.t_collate = self.t_collated = 0
        self.t_cpu_fetch = self.t_cpu_collate = 0
        self.t_index = self.taken = self.epoch = self.tasks = 0
        self.samples = -1
        self.lane: Any = None
        self.device: Any = None
        self.envelope: Any = None
        self.drawn: Any = None
        self.looks: Any = None


class LaneState:
    """What the hot path needs of a lane, see `lanes.Lane`."""

    __slots__ = ("buf", "capacity", "committed", "count", "first")

    buf: Any
    committed: Any
    count: int
    capacity: int
    first: int


if not TYPE_CHECKING and native is not None:
    BatchTimings, LaneState = native.BatchTimings, native.LaneState
