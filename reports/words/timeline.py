"""A window of batches as slices of time on tracks: the training process, each worker, the pin
thread, the device."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...profiler.base.arrays import Array, Ints, Mask
from ...profiler.store.run.run import LoaderRun

Kind = Literal["main", "worker", "sending", "pin", "device"]

# Tracks in one window: more workers than this have no readable picture.
MAX_WORKERS = 256
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

    def each(self) -> Iterator[tuple[int, int, int]]:
        """(start, length, row) of each slice."""
        values = (self.start_ns, self.length_ns, self.row)
        return zip(*(each.tolist() for each in values), strict=True)


@dataclass(frozen=True)
class Track:
    """One line of the picture. With `exact` false only lengths were measured, and the places are
    the likely ones."""

    name: str
    kind: Kind
    slices: Sequence[Slices]
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
        self._aside = steps and (steps.aside_share or 0.0) > 0.5
        self.rows: Ints = np.flatnonzero(sane).astype(np.int64) + newest.start
        self.start: Ints = t[sane].astype(np.int64)
        self.wait: Ints = wait[sane].astype(np.int64)
        self.handed: Ints = self.start + self.wait
        self._begun: Ints = self.column("t_fetch_ns").astype(np.int64)
        self.worker = self.column("worker")
        begun = (self._begun >= 0) & (self._begun < _LATEST_NS)
        self.from_worker: Mask = (self.worker >= 0) & begun
        self.pinned: Mask = self.from_worker & (self.column("pin_ns") >= 0)

    @property
    def end(self) -> int:
        """When the last step ended."""
        return int((self.handed + self._known("compute")).max())

    def column(self, name: str) -> Array:
        """A column of the window's rows, as recorded: -1 is not measured."""
        values: Array = self._table[name][self._newest][self._sane]
        return values

    def lengths(self, stage: str) -> Ints:
        """How long a stage took: what is absurd counts as not measured."""
        values = self.column(f"{stage}_ns").astype(np.int64)
        return np.where(values < _LONGEST_NS, values, -1)

    def _known(self, *stages: str) -> Ints:
        """How long these stages took together, nothing where they were not measured."""
        known: Ints = np.sum([self.lengths(stage).clip(0) for stage in stages], axis=0)
        return known

    @property
    def sent(self) -> Ints:
        """When the worker had sent the batch; with no measure of the queue, when it was made and
        packed."""
        queued = self.lengths("queued")
        made = self._begun + self._known("fetch", "collate", "pack")
        return np.where(queued >= 0, self.handed - queued - self._known("unpack", "pin"), made)

    def tracks(self) -> tuple[Track, ...]:
        """Every track on which something was measured."""
        found = (self._main(), *self._workers(), self._pin_thread(), self._device())
        return tuple(track for track in found if track.slices)

    def _slices(
        self, stage: str, start: Ints, where: Mask, length: Ints | None = None
    ) -> list[Slices]:
        """One, or none where nothing was measured."""
        length = self.lengths(stage) if length is None else length
        where = where & (length >= 0) & (start >= 0)
        slices = Slices(stage, start[where], length[where], self.rows[where])
        return [slices] if where.any() else []

    def _main(self) -> Track:
        apart = _apart(self.start, self.handed + self._known("compute"))
        unpack = np.minimum(self.lengths("unpack"), self.wait)
        slices = self._slices("wait", self.start, apart, self.wait)
        at, left = self.start, self.wait
        # Without workers, one after the other inside next().
        for stage in ("index", "fetch", "collate", "pin"):
            length = np.minimum(self.lengths(stage), left)
            slices += self._slices(stage, at, ~self.from_worker & apart, length)
            at, left = at + length.clip(0), left - length.clip(0)
        own = self.from_worker & ~self.pinned & apart
        slices += self._slices("unpack", self.handed - unpack, own, unpack)
        slices += self._slices("compute", self.handed, apart)
        return Track("main", "main", slices)

    def _workers(self) -> Iterator[Track]:
        fetched = self._begun + self._known("fetch")
        made, pack = fetched + self._known("collate"), self.lengths("pack")
        for worker in np.unique(self.worker[self.from_worker]).tolist()[:MAX_WORKERS]:
            own = self.from_worker & (self.worker == worker)
            apart = own.copy()
            apart[own] = _apart(self._begun[own], made[own])
            slices = self._slices("fetch", self._begun, apart)
            slices += self._slices("collate", fetched, apart)
            yield Track(f"worker {worker}", "worker", slices)
            # The queue's own thread packs, while the worker fetches the next batch.
            start = _one_after_the_other(self.sent - pack, pack, own & (pack >= 0))
            yield Track(f"worker {worker} sending", "sending", self._slices("pack", start, own))

    def _pin_thread(self) -> Track:
        start = _one_after_the_other(self.sent, self._known("unpack", "pin"), self.pinned)
        slices = self._slices("unpack", start, self.pinned)
        slices += self._slices("pin", start + self._known("unpack"), self.pinned)
        return Track("pin thread", "pin", slices, exact=False)

    def _device(self) -> Track:
        """Steps one after another, none before its batch was handed over. A copy is the step's
        first part; those on a stream of their own are left out. While the device stood still, it
        waited for that batch."""
        copy, step, stall = (self.lengths(name) for name in ("h2d", "compute_device", "stall"))
        if self._aside:
            copy = np.full_like(copy, -1)
        known, within = (copy >= 0) | (step >= 0), copy.clip(0)
        start = _one_after_the_other(self.handed, np.maximum(within, step).clip(0), known)
        rest = np.where(step >= 0, (step - within).clip(0), -1)
        slices = self._slices("stall", start - stall.clip(0), known & (stall > 0))
        slices += self._slices("h2d", start, known, copy)
        slices += self._slices("compute_device", start + within, known, rest)
        return Track("device", "device", slices, exact=False)


def _one_after_the_other(start: Ints, length: Ints, where: Mask) -> Ints:
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


def _apart(start: Ints, end: Ints) -> Mask:
    """Which spans begin when all that began before have ended: of loops over one loader that
    interleave, others are left out."""
    order = np.argsort(start, kind="stable")
    ends = np.maximum.accumulate(np.concatenate(([0], end[order])))
    apart = np.empty(len(start), dtype=bool)
    apart[order] = start[order] >= ends[:-1]
    return apart
