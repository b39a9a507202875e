"""Times cold and warm reading of each layout, and decoding, in rounds in which all take turns.

Other load on the machine affects all alike, as ratios are taken within a round.
"""

from __future__ import annotations

import gc
import math
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from .decoders import Decoder
from .layout import Layout
from .page_cache import make_cold

# There are fewer rounds than planned only if time ends.
MAX_ROUNDS = 7
PLANNED_ROUNDS = 5
# A pass reads at least this many samples.
MIN_PASS_SAMPLES = 8
# Storage varies: only this part of the remaining time is planned.
SAFETY = 0.8


class _Late(Exception):
    """The deadline passed within a pass, which does not count."""


@dataclass
class Timed:
    """The layouts that were timed, the files first. `decode_s` is seconds a sample by round, empty
    where nothing decodes them."""

    layouts: list[Layout]
    decode_s: list[float] = field(default_factory=list)
    rounds: int = 0
    cold_reason: str | None = None


def time_layouts(
    layouts: Sequence[Layout], decoder: Decoder | None, decoded: int, seed: int, deadline: float
) -> Timed:
    """Passes over each layout that has no `reason`, until the deadline. The first `decoded` samples
    are known to decode."""
    timed = Timed([each for each in layouts if each.reason is None])
    rng, collects = random.Random(seed), gc.isenabled()
    gc.collect()
    gc.disable()  # it must not slow some layouts only
    try:
        # Without cold files there is nothing to compare with.
        timed.cold_reason = make_cold(timed.layouts[0].files)
        with suppress(_Late):
            while timed.rounds < MAX_ROUNDS:
                begun = time.monotonic()
                _round(timed, decoder, decoded, rng, deadline)
                if timed.rounds >= PLANNED_ROUNDS and 2 * time.monotonic() - begun > deadline:
                    break
    finally:
        if collects:
            gc.enable()
    return timed


def _round(
    timed: Timed, decoder: Decoder | None, decoded: int, rng: random.Random, deadline: float
) -> None:
    """Two passes over each layout, and one of decoding, with equal shares of the time. A round that
    is broken off leaves no figures: not every pair is whole."""
    layouts, number, passes = timed.layouts, timed.rounds, []
    left = SAFETY * (deadline - time.monotonic()) / max(1, PLANNED_ROUNDS - number)
    share_s = left / (2 * len(layouts) + bool(decoded))
    start = number % len(layouts)
    for layout in layouts[start:] + layouts[:start]:
        why = timed.cold_reason or make_cold(layout.files)
        order = list(range(layout.count))
        if layout.format.order == "shuffled":
            rng.shuffle(order)
        with layout.format.open(layout) as read:
            # Nothing is in the page cache, then all of it is, and of a mapping all is mapped.
            cold_s, number_read = _pass(map(read, order), deadline, share_s)
            warm_s, _ = _pass(map(read, order[:number_read]), deadline)
        passes.append((layout, cold_s if why is None else None, warm_s))
    if decoder is not None and decoded:
        spent: list[float] = []
        with layouts[0].format.open(layouts[0]) as read:
            samples = map(read, rng.sample(range(decoded), decoded))
            times = (_seconds(decoder, data) for data in samples)
            _pass(map(spent.append, times), deadline, share_s)
        timed.decode_s.append(sum(spent) / len(spent))
    for layout, cold, warm in passes:
        layout.cold_s.append(cold)
        layout.warm_s.append(warm)
    timed.rounds += 1


def _pass(samples: Iterator[Any], deadline: float, share_s: float = math.inf) -> tuple[float, int]:
    """Seconds a sample, and how many were read in the share of time."""
    clock, number = time.monotonic, 0
    begun = clock()
    stop = min(deadline, begun + share_s)
    for number, _ in enumerate(samples, 1):
        if clock() > stop:
            if stop == deadline:
                raise _Late
            if number >= MIN_PASS_SAMPLES:
                break
    return (clock() - begun) / number, number


def _seconds(decoder: Decoder, data: bytes) -> float:
    begun = time.perf_counter()
    decoder.decode(data)
    return time.perf_counter() - begun
