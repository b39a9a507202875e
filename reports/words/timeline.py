"""A window of batches as slices of time on tracks: the training process, each worker, the pin
thread, the device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ...profiler.store.run.run import LoaderRun

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Kind = Literal["main", "worker", "sending", "pin", "device"]

# Tracks in one window: more workers than this have no readable picture.
MAX_WORKERS = 256
# Loops that interleave over one loader, each on a track of its own; slices of more are left out.
MAX_LANES = 8
# A lane that is damaged may hold any number: no batch takes longer than a month, no clock runs for
# centuries.
_LONGEST_NS = 30 * 86_400 * 10**9
_LATEST_NS = 1 << 61


@dataclass(frozen=True)
class Slices:
    """What one stage did on one track: `start_ns` (host clock), `length_ns` and the batch's row,
    one value each."""

    stage: str
    start_ns: Ints
    length_ns: Ints
    row: Ints


@dataclass(frozen=True)
class Track:
    """One line of the picture. With `exact` false only lengths were measured, and the places are
    the likely ones."""

    name: str
    kind: Kind
    slices: tuple[Slices, ...]
    exact: bool = True


class Window:
    """The newest `batches` of a loader, with what is derived from their columns. Rows that make no
    sense are left out.

    `rows` are row numbers in `loader.batches`.
    """

    def __init__(self, loader: LoaderRun, batches: int) -> None:
        table = loader.batches
        newest = slice(max(0, table.rows - batches), table.rows)
        t, wait = table["t_ns"][newest], table["wait_ns"][newest]
        sane = (t >= 0) & (t < _LATEST_NS) & (wait >= 0) & (wait < _LONGEST_NS)
        self._table, self._newest, self._sane = table, newest, sane
        steps = loader.device_steps
        self._aside = steps is not None and (steps.aside_share or 0.0) > 0.5
        self.rows: Ints = np.flatnonzero(sane).astype(np.int64) + newest.start
        self.start: Ints = t[sane].astype(np.int64)
        self.wait: Ints = wait[sane].astype(np.int64)
        self.handed: Ints = self.start + self.wait
        self.compute = self.lengths("compute_ns")
        worker, begun = self.column("worker"), self.column("t_fetch_ns")
        self.from_worker: Flags = (worker >= 0) & (begun >= 0) & (begun < _LATEST_NS)
        self.pinned: Flags = self.from_worker & (self.column("pin_ns") >= 0)

    def column(self, name: str) -> npt.NDArray[Any]:
        """A column of the window's rows, as recorded: -1 is not measured."""
        values: npt.NDArray[Any] = self._table[name][self._newest][self._sane]
        return values

    def lengths(self, name: str) -> Ints:
        """A column of durations: what is absurd counts as not measured."""
        values = self.column(name).astype(np.int64)
        return np.where(values < _LONGEST_NS, values, -1)

    @property
    def sent(self) -> Ints:
        """When the worker had sent the batch; with no measure of the queue, when it was made and
        packed."""
        queued, unpack, pin = (self.lengths(name) for name in ("queued_ns", "unpack_ns", "pin_ns"))
        made = self.column("t_fetch_ns").astype(np.int64) + sum(
            self.lengths(name).clip(0) for name in ("fetch_ns", "collate_ns", "pack_ns")
        )
        return np.where(queued >= 0, self.handed - queued - unpack.clip(0) - pin.clip(0), made)

    def tracks(self) -> tuple[Track, ...]:
        """Every track on which something was measured."""
        found = [*self._main(), *self._workers(), self._pin_thread(), *self.device()]
        return tuple(track for track in found if track.slices)

    def _slices(self, stage: str, start: Ints, length: Ints, where: Flags) -> Iterator[Slices]:
        where = where & (length >= 0) & (start >= 0)
        if where.any():
            yield Slices(stage, start[where], length[where], self.rows[where])

    def _main(self) -> Iterator[Track]:
        own = ~self.from_worker
        lane = _lanes(self.start, self.handed + self.compute.clip(0))
        unpack = np.minimum(self.lengths("unpack_ns"), self.wait)
        for number in range(int(lane.max(initial=-1)) + 1):
            here = lane == number
            slices = [*self._slices("wait", self.start, self.wait, here)]
            at, left = self.start, self.wait
            for stage in (
                "index",
                "fetch",
                "collate",
                "pin",
            ):  # without workers, one after the other inside next()
                length = self.lengths(f"{stage}_ns")
                length = np.where(length >= 0, np.minimum(length, left), -1)
                slices += self._slices(stage, at, length, own & here)
                at, left = at + length.clip(0), left - length.clip(0)
            slices += self._slices(
                "unpack", self.handed - unpack, unpack, self.from_worker & ~self.pinned & here
            )
            slices += self._slices("compute", self.handed, self.compute, here)
            yield Track("main" if not number else f"main ({number + 1})", "main", tuple(slices))

    def _workers(self) -> Iterator[Track]:
        worker = self.column("worker")
        begun = self.column("t_fetch_ns").astype(np.int64)
        fetch, collate, pack = (self.lengths(f"{name}_ns") for name in ("fetch", "collate", "pack"))
        made = begun + fetch.clip(0) + collate.clip(0)
        for number in np.unique(worker[self.from_worker]).tolist()[:MAX_WORKERS]:
            own = self.from_worker & (worker == number)
            lane = np.full(len(own), -1)
            lane[own] = _lanes(begun[own], made[own])
            for each in range(int(lane.max(initial=-1)) + 1):
                here = lane == each
                name = f"worker {number}" if not each else f"worker {number} ({each + 1})"
                slices = [*self._slices("fetch", begun, fetch, here)]
                slices += self._slices("collate", begun + fetch.clip(0), collate, here)
                yield Track(name, "worker", tuple(slices))
            # The queue's own thread packs, while the worker fetches the next batch.
            start = _one_after_the_other(self.sent - pack.clip(0), pack.clip(0), own & (pack >= 0))
            yield Track(
                f"worker {number} sending", "sending", tuple(self._slices("pack", start, pack, own))
            )

    def _pin_thread(self) -> Track:
        unpack, pin = self.lengths("unpack_ns").clip(0), self.lengths("pin_ns").clip(0)
        start = _one_after_the_other(self.sent, unpack + pin, self.pinned)
        slices = [*self._slices("unpack", start, self.lengths("unpack_ns"), self.pinned)]
        slices += self._slices("pin", start + unpack, self.lengths("pin_ns"), self.pinned)
        return Track("pin thread", "pin", tuple(slices), exact=False)

    def device(self) -> tuple[Track, ...]:
        """Steps one after another, none before its batch was handed over. A copy is the step's
        first part, or has a track of its own where it has a stream of its own. While the device
        stood still, it waited for that batch."""
        copy, step, stall = (
            self.lengths(name) for name in ("h2d_ns", "compute_device_ns", "stall_ns")
        )
        known = (copy >= 0) | (step >= 0)
        within = np.zeros_like(copy) if self._aside else copy.clip(0)
        start = _one_after_the_other(self.handed, np.maximum(within, step).clip(0), known)
        copied = _one_after_the_other(self.handed, copy.clip(0), known) if self._aside else start
        copies = tuple(self._slices("h2d", copied, copy, known))
        slices = [
            *self._slices("stall", start - stall.clip(0), np.where(stall > 0, stall, -1), known)
        ]
        slices += () if self._aside else copies
        slices += self._slices(
            "compute_device",
            start + within,
            np.where(step >= 0, (step - within).clip(0), -1),
            known,
        )
        found = [Track("device", "device", tuple(slices), exact=False)]
        found += [Track("device copies", "device", copies, exact=False)] if self._aside else []
        return tuple(track for track in found if track.slices)


def _one_after_the_other(start: Ints, length: Ints, where: Flags) -> Ints:
    """Starts moved forward so that no two slices that count overlap: one thread, or one stream,
    does them all."""
    placed: Ints = start.copy()
    at = np.flatnonzero(where)
    at = at[np.argsort(start[at], kind="stable")]
    if len(at):
        # start[i] = max(start[i], start[i-1] + length[i-1]), without a loop: work done so far is a
        # running sum.
        before = np.concatenate(([0], np.cumsum(length[at])[:-1]))
        placed[at] = np.maximum.accumulate(start[at] - before) + before
    return placed


def _lanes(start: Ints, end: Ints) -> Ints:
    """A lane for each of the spans, from 0, so that none overlap within one: loops over one loader
    may interleave."""
    lane = np.zeros(len(start), dtype=np.int64)
    order = np.argsort(start, kind="stable")
    if not np.any(start[order][1:] < np.maximum.accumulate(end[order])[:-1]):
        return lane
    free_ns: list[int] = []
    for at in order.tolist():
        number = next((i for i, free in enumerate(free_ns) if free <= start[at]), len(free_ns))
        if number == len(free_ns):
            if number == MAX_LANES:
                lane[at] = -1
                continue
            free_ns.append(0)
        free_ns[number] = int(end[at])
        lane[at] = number
    return lane
