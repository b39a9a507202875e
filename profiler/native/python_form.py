"""The Python form of the hot path, under the names of `_native`.

The types of `src/batch_timings.h`, `lane_state.h`, `parcel.h`, `collate_mark.h` and `stamping.h`
are here. The hooks are in `python_iterator` (the process that iterates), `python_worker` and
`python_device`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..base.clock import now_ns, thread_cpu_ns
from .layout import SENT, SENT_AT, TIMES_AT
from .python_device import Noticing, StepMarks  # noqa: F401
from .python_iterator import (  # noqa: F401
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
from .python_worker import following, putting, sending, taking, working  # noqa: F401


class BatchTimings:
    """The clock readings of the current batch, and what else its record needs.

    `detailed` asks for CPU times and single samples too. `special` is set if a record needs more
    than its head. `waiting` counts the batches that were finished when this one was taken.
    """

    def __init__(self) -> None:
        self.detailed = self.special = True
        self.t_fetch = self.t_collate = self.t_collated = 0
        self.t_cpu_fetch = self.t_cpu_collate = 0
        self.t_index = self.taken = self.epoch = self.tasks = 0
        self.samples = self.waiting = -1
        self.lane = self.device = self.envelope = self.drawn = self.looks = None


class LaneState:
    """The fields of `lanes.Lane` that the hot path uses."""

    __slots__ = ("buf", "capacity", "committed", "count", "first")


class Parcel:
    """A received batch and its times (ns). `times` is packed by `TIMES`."""

    def __init__(self, payload: Any, meta: bytes, unpack_ns: int) -> None:
        self.payload = payload
        self.times = meta[TIMES_AT:SENT_AT]
        self.pack_ns, self.t_sent_ns, self.pickled_bytes = SENT.unpack_from(meta, SENT_AT)
        self.unpack_ns = unpack_ns
        self.pin_ns = -1


class CollateMark(property):
    """A fetcher's collate_fn. Reading it marks the begin of collating."""

    def __init__(self) -> None:
        super().__init__(
            _collate_asked_for,
            lambda fetcher, value: setattr(fetcher, "_loaderscope_collate", value),
        )


def _collate_asked_for(fetcher: Any) -> Any:
    timings = fetcher._loaderscope_timings
    if timings.detailed:
        timings.t_cpu_collate = thread_cpu_ns()
    timings.t_collate = now_ns()
    return fetcher._loaderscope_collate


def Stamping(items: list[Any], stamps: list[int], /) -> Iterator[Any]:
    """Iterate over a list, and note the time of each request, also of the last."""
    stamp = stamps.append
    for item in list.__iter__(items):
        stamp(now_ns())
        yield item
    stamp(now_ns())
