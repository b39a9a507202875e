"""Times reading from each layout, cold and warm, and decoding, in rounds in which all take turns.

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

# There are fewer rounds than planned only where time ends.
MAX_ROUNDS = 7
PLANNED_ROUNDS = 5
# A first round, which does not count, checks what is read and shows what a pass costs.
PILOT_SAMPLES = 32
MIN_PASS_SAMPLES = 8
# Storage is fickle: only this part of the remaining time is planned with.
SAFETY = 0.8


@dataclass
class Timed:
    """The layouts that were timed, the files first. `decode_s` is seconds a sample by round, empty
    where nothing decodes them."""

    layouts: list[Layout]
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
    """Passes over each layout that has no `reason`, until the deadline.

    A layout that gives other samples than were put in gets a reason instead of figures.
    """
    timed = Timed([each for each in layouts if each.reason is None])
    samples = min(PILOT_SAMPLES, converted.decoded)
    trial = _Trial(
        timed, converted, decoder if samples else None, random.Random(seed), deadline, samples
    )
    try:
        trial.pilot()
        gc.collect()  # once: with large libraries loaded it takes longer than many a pass
        for number in range(MAX_ROUNDS):
            trial.plan(number)
            begun = time.monotonic()
            trial.round(number)
            timed.rounds += 1
            if number + 1 >= PLANNED_ROUNDS and 2 * time.monotonic() - begun > deadline:
                break
    except _Late:
        pass
    for layout in timed.layouts:  # of a round that was broken off, no pair is whole
        del layout.cold_s[timed.rounds :], layout.warm_s[timed.rounds :]
    del timed.decode_s[timed.rounds :]
    return timed


class _Late(Exception):
    """The deadline passed within a pass, which does not count then."""


@dataclass
class _Trial:
    timed: Timed
    converted: Converted
    decoder: Decoder | None
    rng: random.Random
    deadline: float
    decode_samples: int
    # Seconds a sample: both passes of a layout by its name, and "decode".
    costs: dict[str, float] = field(default_factory=dict)

    def plan(self, number: int) -> None:
        """How many samples each reads in this round: all get as much of the time, by what they
        cost last time."""
        left = SAFETY * (self.deadline - time.monotonic())
        share = left / max(1, PLANNED_ROUNDS - number) / (len(self.costs) or 1)

        def affordable(name: str, most: int) -> int:
            return min(most, max(MIN_PASS_SAMPLES, int(share / max(self.costs[name], 1e-9))))

        for layout in self.timed.layouts:
            layout.pass_samples = affordable(layout.format.name, layout.count)
        if self.decoder is not None:
            self.decode_samples = affordable("decode", self.converted.decoded)

    def pilot(self) -> None:
        """A first visit to each shows what it costs, and drops layouts that return something
        else."""
        for layout in list(self.timed.layouts):
            layout.pass_samples = min(PILOT_SAMPLES, layout.count)
            order = self.order(layout)
            layout.reason = self.wrong(layout, order)
            if layout.reason is None:
                self.visit(layout, order, counted=False)
            else:
                self.timed.layouts.remove(layout)
        self.decoding()

    def wrong(self, layout: Layout, order: Sequence[int]) -> str | None:
        """Why this layout cannot be trusted to give back what was put in; None where it does."""
        checks = self.converted.checks[layout.format.form]
        try:
            with layout.reading() as read:
                got = [check(sample) for sample in self.until_deadline(read(order))]
        except _Late:
            raise
        except Exception as error:
            return f"reading it failed ({type(error).__name__}: {clean(error, 160)})"
        if got != [checks[index] for index in order]:
            return "it gave other samples than were stored"
        return None

    def round(self, number: int) -> None:
        layouts = self.timed.layouts
        start = number % len(layouts) if layouts else 0
        for layout in layouts[start:] + layouts[:start]:
            self.visit(layout, self.order(layout), counted=True)
        self.timed.decode_s += self.decoding()

    def visit(self, layout: Layout, order: Sequence[int], *, counted: bool) -> None:
        """A pass that finds nothing in the page cache, if that can be had, and the same once
        more."""
        begun = time.perf_counter()
        why = self.timed.cold_reason or make_cold(layout.files)
        if layout is self.timed.layouts[0] and not counted:
            # Where the files cannot be made cold, there is nothing to compare with.
            self.timed.cold_reason = why
        with layout.reading() as read:
            cold_s, warm_s = self.one_pass(read, order), self.one_pass(read, order)
        self.costs[layout.format.name] = (time.perf_counter() - begun) / len(order)
        if counted:
            layout.cold_s.append(cold_s if why is None else None)
            layout.warm_s.append(warm_s)

    def one_pass(self, read: Read, order: Sequence[int]) -> float:
        """Seconds a sample."""
        with _no_collection():
            begun = time.perf_counter()
            for _ in self.until_deadline(read(order)):
                pass
            return (time.perf_counter() - begun) / len(order)

    def decoding(self) -> list[float]:
        """Seconds a sample of decoding alone, from bytes in memory; none where nothing decodes."""
        if self.decoder is None:
            return []
        decode, spent = self.decoder.decode, 0.0
        order = self.rng.sample(range(self.converted.decoded), self.decode_samples)
        with self.timed.layouts[0].reading() as read, _no_collection():
            for data in self.until_deadline(read(order)):
                begun = time.perf_counter()
                decode(data)
                spent += time.perf_counter() - begun
        self.costs["decode"] = spent / len(order)
        return [self.costs["decode"]]

    def order(self, layout: Layout) -> list[int]:
        """A pass's samples as a shuffled sampler asks for them; of a layout read in sequence, its
        first."""
        if layout.format.order == "in sequence":
            return list(range(layout.pass_samples))
        return self.rng.sample(range(layout.count), layout.pass_samples)

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
