"""Times cold and warm reading of each layout, and decoding, in rounds in which all take turns.

Other load on the machine affects all alike, as ratios are taken within a round.
"""

from __future__ import annotations

import gc
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ...profiler.base.metadata import clean
from .convert import Converted, check
from .decoders import Decoder
from .layout import Layout
from .page_cache import make_cold

# There are fewer rounds than planned only if time ends.
MAX_ROUNDS = 7
PLANNED_ROUNDS = 5
# So many samples are checked first, and a pass reads at least so many.
CHECKED_SAMPLES = 32
MIN_PASS_SAMPLES = 8
# Storage varies: only this part of the remaining time is planned.
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

    A layout that returns other samples than were stored gets a reason instead of figures.
    """
    timed = Timed([each for each in layouts if each.reason is None])
    decoded = converted.decoded if decoder is not None else 0
    trial = _Trial(timed, decoder if decoded else None, random.Random(seed), deadline)
    try:
        trial.check(converted)
        gc.collect()  # once: with large libraries loaded it takes longer than many a pass
        for number in range(MAX_ROUNDS if timed.layouts else 0):
            begun = time.monotonic()
            trial.round(number, decoded)
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
    """The deadline passed within a pass, which does not count."""


@dataclass
class _Trial:
    timed: Timed
    decoder: Decoder | None
    rng: random.Random
    deadline: float

    def check(self, converted: Converted) -> None:
        """Drop layouts that return other samples than were stored."""
        for layout in list(self.timed.layouts):
            order, checks = self.order(layout)[:CHECKED_SAMPLES], converted.checks
            got: list[int] = []
            try:
                with layout.reading() as read:
                    self.one_pass(map(got.append, map(check, read(order))))
            except _Late:
                raise
            except Exception as error:
                text = clean(error, 160)
                layout.reason = f"reading it failed ({type(error).__name__}: {text})"
            else:
                if got != [checks[layout.format.form][index] for index in order]:
                    layout.reason = "it gave other samples than were stored"
            if layout.reason is not None:
                self.timed.layouts.remove(layout)
        for layout in self.timed.layouts[:1]:  # without cold files there is nothing to compare with
            self.timed.cold_reason = make_cold(layout.files)

    def round(self, number: int, decoded: int) -> None:
        """Two passes over each layout, and one of decoding, with equal shares of the time."""
        layouts = self.timed.layouts
        left = SAFETY * (self.deadline - time.monotonic()) / max(1, PLANNED_ROUNDS - number)
        share_s = left / (2 * len(layouts) + bool(decoded))
        start = number % len(layouts)
        for layout in layouts[start:] + layouts[:start]:
            why, order = self.timed.cold_reason or make_cold(layout.files), self.order(layout)
            with layout.reading() as read:
                # Nothing is in the page cache, then all of it is.
                cold_s, read_samples = self.one_pass(read(order), share_s)
                warm_s, _ = self.one_pass(read(order[:read_samples]))
            layout.cold_s.append(cold_s if why is None else None)
            layout.warm_s.append(warm_s)
        if self.decoder is not None:
            decode, spent = self.decoder.decode, list[float]()
            with layouts[0].reading() as read:
                samples = read(self.rng.sample(range(decoded), decoded))
                times = (_seconds(decode, data) for data in samples)
                self.one_pass(map(spent.append, times), share_s)
            self.timed.decode_s.append(sum(spent) / len(spent))

    def one_pass(self, samples: Iterator[Any], share_s: float = math.inf) -> tuple[float, int]:
        """Seconds a sample, and how many were read in the share of time."""
        clock, number = time.monotonic, 0
        with _no_collection():
            begun = clock()
            stop = min(self.deadline, begun + share_s)
            for number, _ in enumerate(samples, 1):
                if clock() > stop:
                    if stop == self.deadline:
                        raise _Late
                    if number >= MIN_PASS_SAMPLES:
                        break
            return (clock() - begun) / number, number

    def order(self, layout: Layout) -> list[int]:
        """The samples as a shuffled sampler asks for them, or in sequence."""
        if layout.format.order == "in sequence":
            return list(range(layout.count))
        return self.rng.sample(range(layout.count), layout.count)


def _seconds(decode: Callable[[bytes], object], data: bytes) -> float:
    begun = time.perf_counter()
    decode(data)
    return time.perf_counter() - begun


@contextmanager
def _no_collection() -> Iterator[None]:
    """Python's garbage collector must not slow some layouts only."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
