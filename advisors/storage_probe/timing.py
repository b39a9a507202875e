"""Times reading from each layout, cold and warm, and decoding: in rounds in which all take turns.

Whatever else the machine does hits them all alike, and ratios are taken within a round.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ...profiler.base.metadata import clean
from .convert import Converted, check
from .decoders import Decoder
from .layout import Layout, Read
from .page_cache import make_cold

# Rounds that count. Fewer than the first only where time ends; the spread shown is that of all of
# them.
MAX_ROUNDS = 7
PLANNED_ROUNDS = 5

# A first round, which does not count, checks what is read and tells how many samples a pass can
# afford.
PILOT_SAMPLES = 32
MIN_PASS_SAMPLES = 8


# Storage is fickle: so much of the time that is left is planned with.
SAFETY = 0.8


@dataclass
class Lane:
    """One layout and its passes: seconds a sample by round, None where a pass was not measured."""

    layout: Layout
    cold_s: list[float | None] = field(default_factory=list)
    warm_s: list[float | None] = field(default_factory=list)
    samples: int = 0  # a pass


@dataclass
class Timed:
    """All lanes. `decode_s` is seconds a sample by round, empty where nothing decodes them."""

    lanes: list[Lane]
    decode_s: list[float] = field(default_factory=list)
    rounds: int = 0
    cold_reason: str | None = None


def time_layouts(
    layouts: Sequence[Layout],
    converted: Converted,
    decoder: Decoder | None,
    seed: int,
    deadline: float,
) -> Timed:
    """Passes over each layout that has no `reason`, until the deadline. The first layout is the
    files as they are.

    A layout that gives other samples than were put in gets a reason instead of figures.
    """
    return _Trial(layouts, converted, decoder, random.Random(seed), deadline).run()


class _Late(Exception):
    """The deadline passed within a pass: it does not count."""


class _Trial:
    def __init__(
        self,
        layouts: Sequence[Layout],
        converted: Converted,
        decoder: Decoder | None,
        rng: random.Random,
        deadline: float,
    ) -> None:
        self.timed = Timed([Lane(layout) for layout in layouts if layout.reason is None])
        self.converted, self.rng, self.deadline = converted, rng, deadline
        self.decoder = decoder if converted.decoded else None
        self.costs: dict[
            str, float
        ] = {}  # seconds a sample: both passes of a layout by its name, and "decode"
        self.decode_samples = min(PILOT_SAMPLES, converted.decoded)

    def run(self) -> Timed:
        timed = self.timed
        try:
            self.pilot()
            gc.collect()  # once: with large libraries loaded it takes longer than many a pass
            for number in range(MAX_ROUNDS):
                self.plan(number)
                begun = time.monotonic()
                self.round(number)
                timed.rounds += 1
                if number + 1 >= PLANNED_ROUNDS and 2 * time.monotonic() - begun > self.deadline:
                    break
        except _Late:
            pass
        for lane in timed.lanes:  # of a round that was broken off, no pair is whole
            del lane.cold_s[timed.rounds :], lane.warm_s[timed.rounds :]
        del timed.decode_s[timed.rounds :]
        return timed

    def plan(self, number: int) -> None:
        """How many samples each reads in this round, from what they cost last time: all get as much
        of the time."""
        left = SAFETY * (self.deadline - time.monotonic())
        share = left / max(1, PLANNED_ROUNDS - number) / (len(self.costs) or 1)
        for lane in self.timed.lanes:
            lane.samples = lane.layout.pass_samples(
                _affordable(share, self.costs[lane.layout.name])
            )
        if self.decoder is not None:
            self.decode_samples = min(
                _affordable(share, self.costs["decode"]), self.converted.decoded
            )

    def pilot(self) -> None:
        """A first visit to each, which tells what they cost; drops layouts that return something
        else."""
        for lane in list(self.timed.lanes):
            layout = lane.layout
            order = self.order(layout, layout.pass_samples(PILOT_SAMPLES))
            layout.reason = self.wrong(layout, order)
            if layout.reason is not None:
                self.timed.lanes.remove(lane)
                continue
            self.visit(lane, order, counted=False)
        if self.decoder is not None:
            self.decoding()

    def wrong(self, layout: Layout, order: Sequence[int]) -> str | None:
        """Why this layout cannot be trusted to give back what was put in; None where it does."""
        checks = (
            self.converted.encoded_checks
            if layout.form == "encoded"
            else self.converted.decoded_checks
        )
        try:
            with layout.reading() as read:
                got = [check(sample) for sample in self.until_deadline(read(order))]
        except _Late:
            raise
        except Exception as error:
            return f"reading it failed ({type(error).__name__}: {clean(error, 160)})"
        return (
            None
            if got == [checks[index] for index in order]
            else "it gave other samples than were stored"
        )

    def round(self, number: int) -> None:
        lanes = self.timed.lanes
        start = number % len(lanes) if lanes else 0
        for lane in lanes[start:] + lanes[:start]:
            self.visit(lane, self.order(lane.layout, lane.samples), counted=True)
        if self.decoder is not None:
            self.timed.decode_s.append(self.decoding())

    def visit(self, lane: Lane, order: Sequence[int], *, counted: bool) -> None:
        """A pass that finds nothing in the page cache, if that can be had, and the same once
        more."""
        layout, begun = lane.layout, time.perf_counter()
        why = self.timed.cold_reason or make_cold(layout.paths())
        if lane is self.timed.lanes[0] and not counted:
            self.timed.cold_reason = (
                why  # where the files cannot be made cold, there is nothing to compare with
            )
        with layout.reading() as read:
            cold_s = self.one_pass(read, order)
            warm_s = self.one_pass(read, order)
        self.costs[layout.name] = (time.perf_counter() - begun) / len(order)
        if counted:
            lane.cold_s.append(cold_s if why is None else None)
            lane.warm_s.append(warm_s)

    def one_pass(self, read: Read, order: Sequence[int]) -> float:
        """Seconds a sample."""
        with _no_collection():
            begun = time.perf_counter()
            for _ in self.until_deadline(read(order)):
                pass
            return (time.perf_counter() - begun) / len(order)

    def decoding(self) -> float:
        """Seconds a sample of decoding alone, from bytes in memory."""
        assert self.decoder is not None
        decode = self.decoder.decode
        spent = 0.0
        order = self.rng.sample(range(self.converted.decoded), self.decode_samples)
        with self.timed.lanes[0].layout.reading() as read, _no_collection():
            for data in self.until_deadline(read(order)):
                begun = time.perf_counter()
                decode(data)
                spent += time.perf_counter() - begun
        self.costs["decode"] = spent / len(order)
        return self.costs["decode"]

    def order(self, layout: Layout, number: int) -> list[int]:
        """So many samples as a shuffled sampler asks for them; for a layout read in sequence, its
        first."""
        if layout.order == "in sequence":
            return list(range(number))
        return self.rng.sample(range(layout.count), number)

    def until_deadline(self, samples: Iterator[Any]) -> Iterator[Any]:
        clock, deadline = time.monotonic, self.deadline
        for sample in samples:
            if clock() > deadline:
                raise _Late
            yield sample


@contextmanager
def _no_collection() -> Iterator[None]:
    """Python's collector must not strike one layout and spare another."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _affordable(seconds: float, cost_s: float) -> int:
    return max(MIN_PASS_SAMPLES, int(seconds / max(cost_s, 1e-9)))
