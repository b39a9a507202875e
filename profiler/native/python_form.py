"""The Python form of the hot path: what `_native` has, under the same names.

Here are the types, as `src/batch_timings.h`, `lane_state.h`, `parcel.h`, `collate_mark.h` and
`stamping.h` have them; the hooks are in `python_iterator` (the process that iterates) and
`python_worker`, what a device needs in `python_device`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..base.clock import now_ns, thread_cpu_ns
from .layout import SENT, SENT_AT, TIMES_AT
from .python_device import Noticing, StepMarks
from .python_iterator import (
    arriving,
    drawing,
    fetching,
    getting,
    indexing,
    making,
    opened,
    processing,
    receiving,
    resetting,
    stepping,
)
from .python_worker import following, putting, sending, taking, working

__all__ = [
    "BatchTimings",
    "CollateMark",
    "LaneState",
    "Noticing",
    "Parcel",
    "Stamping",
    "StepMarks",
    "arriving",
    "drawing",
    "fetching",
    "following",
    "getting",
    "indexing",
    "making",
    "opened",
    "processing",
    "putting",
    "receiving",
    "resetting",
    "sending",
    "stepping",
    "taking",
    "working",
]


class BatchTimings:
    """The clock readings of the batch being made, and what else each batch's record needs at hand.

    `detailed` asks for CPU time and single samples too; `special` is set where a record needs more
    than its head. `waiting` counts the batches that were finished when this one was taken.
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
        "waiting",
    )

    def __init__(self) -> None:
        self.detailed = self.special = True
        self.t_fetch = self.t_collate = self.t_collated = 0
        self.t_cpu_fetch = self.t_cpu_collate = 0
        self.t_index = self.taken = self.epoch = self.tasks = 0
        self.samples = self.waiting = -1
        self.lane: Any = None
        self.device: Any = None
        self.envelope: Any = None
        self.drawn: Any = None
        self.looks: Any = None


class LaneState:
    """What the hot path needs of a lane, see `lanes.Lane`."""

    __slots__ = ("buf", "capacity", "committed", "count", "first")


class Parcel:
    """A batch and its times (ns), in main. `times` is what `TIMES` packs."""

    __slots__ = ("pack_ns", "payload", "pickled_bytes", "pin_ns", "t_sent_ns", "times", "unpack_ns")

    def __init__(self, payload: Any, meta: bytes, unpack_ns: int) -> None:
        self.payload = payload
        self.times = meta[TIMES_AT:SENT_AT]
        self.pack_ns, self.t_sent_ns, self.pickled_bytes = SENT.unpack_from(meta, SENT_AT)
        self.unpack_ns = unpack_ns
        self.pin_ns = -1


class CollateMark(property):
    """A fetcher's collate_fn: asking for it marks where collating begins."""

    def __init__(self) -> None:
        super().__init__(_collate_asked_for, _collate_set)


def _collate_asked_for(fetcher: Any) -> Any:
    timings = fetcher._loaderscope_timings
    if timings.detailed:
        timings.t_cpu_collate = thread_cpu_ns()
    timings.t_collate = now_ns()
    return fetcher._loaderscope_collate


def _collate_set(fetcher: Any, value: Any) -> None:
    fetcher._loaderscope_collate = value


def Stamping(items: list[Any], stamps: list[int], /) -> Iterator[Any]:
    """An iterator over a list that notes when each item is asked for, and the end."""
    stamp = stamps.append
    for item in list.__iter__(items):
        stamp(now_ns())
        yield item
    stamp(now_ns())
