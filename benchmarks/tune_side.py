"""The processes of benchmarks/tune.py: `tune_side.py MODE LOOP ARGUMENTS`, one for each thing
measured.

    grid      rates under all settings, each in a short window; the best again in longer ones
    turns     rates under a few settings that take turns
    tuned     a training as a user would tune it
    whole     a number of batches, from the start of the workers on
    loadtune  the same loop given to loadtune, as its manual says

Prints JSON.
"""

from __future__ import annotations

import json
import random
import sys
import time
import zlib
from collections.abc import Callable, Generator, Mapping
from itertools import islice, pairwise
from statistics import median
from typing import Any

import torch
from msgspec.structs import asdict

from tune_cases import LOOPS
from tune_cases.loop import Loop

WORKERS, PREFETCH = range(1, 9), (1, 2, 4, 8)
SHORT_EPOCH = (
    200  # batches: of such, whole epochs are measured, the start of their workers with them
)
GLANCE_S, LOOK_S, TURN_S, ROUNDS = 0.15, 0.4, 0.5, 12
LEAST_STEPS, GLANCE_AT_MOST_S = 8, 1.0
NEAR, LOOKED_AT = (
    0.85,
    (10, 5),
)  # those not so near to the best are not looked at again, nor more each time
AFTER_S, TUNED_AT_MOST_S = 1.0, 75.0
CHECKED = 16  # batches made again, besides those beside switches
Settings = Mapping[str, Any]


class Looping:
    """A training that goes on where it was left, epoch after epoch."""

    def __init__(self, loop: Loop, settings: Settings) -> None:
        self.loader, self.step = loop.loader(settings), loop.step
        self.short, self.anew = len(self.loader) <= SHORT_EPOCH, True
        ahead = self.loader.num_workers * (self.loader.prefetch_factor or 0)
        # Of workers that begin, a first batch each comes at once; of those that had time, all they
        # may make ahead.
        self.at_first = 0 if self.short else self.loader.num_workers + 2
        self.made_ahead, self.position = 0 if self.short else ahead + 2, 0
        self.batches = self._batches()

    def _batches(self) -> Generator[Any, None, None]:
        while True:
            for number, batch in enumerate(self.loader, 1):
                self.position = number % len(self.loader)
                yield batch

    def close(self) -> None:
        """Its workers end now: an iteration that is left refers to itself."""
        self.batches.close()

    def go(self, steps: int = 1) -> None:
        for batch in islice(self.batches, steps):
            self.step(batch)

    def rate(self, seconds: float, at_most: float = 30.0) -> float:
        """Batches a second, of those that are not made ahead already."""
        began = time.perf_counter()
        made_ahead, self.anew = self.at_first if self.anew else self.made_ahead, False
        for _ in range(made_ahead):
            self.go()
            if time.perf_counter() - began > at_most:
                break
        while self.short and self.position:
            self.go()
        began, steps, took = time.perf_counter(), 0, 0.0
        while took < at_most and (
            took < seconds or steps < LEAST_STEPS or (self.short and self.position)
        ):
            self.go()
            steps += 1
            took = time.perf_counter() - began
        return steps / took


def grid_settings(coarse: bool) -> list[dict[str, Any]]:
    workers, prefetch = ((1, 2, 4), (2,)) if coarse else (WORKERS, PREFETCH)
    found: list[dict[str, Any]] = [{"num_workers": 0}]
    found += [{"num_workers": n, "prefetch_factor": factor} for n in workers for factor in prefetch]
    pins = (False, True) if torch.cuda.is_available() else (False,)
    return [{**each, "pin_memory": pin} for each in found for pin in pins]


def grid(loop: Loop, coarse: bool) -> dict[str, Any]:
    """Every one in a short window, in random order; then fewer and fewer again, in longer ones: the
    best by all their windows so far."""
    entries = grid_settings(coarse)
    random.Random(0).shuffle(entries)
    rates: list[list[float]] = [[alone(loop, each, GLANCE_S, GLANCE_AT_MOST_S)] for each in entries]
    near = list(range(len(entries)))
    for number in LOOKED_AT:
        best_first = sorted(near, key=lambda at: -sum(rates[at]) / len(rates[at]))
        near = [at for at in best_first if rates[at][0] >= NEAR * rates[best_first[0]][0]][:number]
        for at in near:
            rates[at].append(alone(loop, entries[at], LOOK_S))
    found = [
        {"settings": each, "rates": [round(rate, 2) for rate in of]}
        for each, of in zip(entries, rates, strict=True)
    ]
    found.sort(key=lambda entry: (-len(entry["rates"]), -sum(entry["rates"]) / len(entry["rates"])))
    return {"entries": found, "worker_start_ms": round(1e3 * worker_start(loop), 1)}


def alone(loop: Loop, settings: Settings, seconds: float, at_most: float = 30.0) -> float:
    """The rate under these settings, while no others have workers."""
    looping = Looping(loop, settings)
    try:
        return looping.rate(seconds, at_most)
    finally:
        looping.close()


def worker_start(loop: Loop) -> float:
    """Seconds from asking for an iterator of one worker to its first batch, less what making a
    batch takes."""

    def first(settings: Settings) -> float:
        loader = loop.loader(settings)
        began = time.perf_counter()
        next(iter(loader))
        return time.perf_counter() - began

    with_one, without = (median(first({"num_workers": n}) for _ in range(3)) for n in (1, 0))
    return max(0.0, with_one - without)


def turns(loop: Loop, entries: list[Settings]) -> dict[str, Any]:
    """Each once a round, in an order that turns round: what the machine does meanwhile moves
    all."""
    loopings = [Looping(loop, each) for each in entries]
    rates: list[list[float]] = [[] for _ in entries]
    order = list(range(len(entries)))
    for looping in loopings:
        looping.go(LEAST_STEPS)
        looping.anew = False
    for _ in range(ROUNDS):
        for at in order:
            rates[at].append(round(loopings[at].rate(TURN_S), 3))
        order.reverse()
    return {"settings": list(entries), "rates": rates}


def tuned(loop: Loop, seconds: float) -> dict[str, Any]:
    """Until it is decided and for some seconds more, or for all of `seconds` if given."""
    from loaderscope.profiler.base.clock import now_ns
    from loaderscope.tuning.tune import _drivers, tune

    torch.manual_seed(0)
    loader = loop.loader()
    began = now_ns()
    tune(loader)
    (driver,) = _drivers.values()
    times, numbers, marks = [began], [], []
    decided_at = 0
    while not _enough(began, times[-1], decided_at, seconds):
        for batch in loader:
            if driver.decided and not decided_at:
                decided_at = times[-1]
            loop.step(batch)
            numbers.append(batch[-1].tolist())
            marks.append(mark(batch))
            times.append(now_ns())
            if _enough(began, times[-1], decided_at, seconds):
                break
    record = [asdict(each) for each in driver.record.switches]
    return {
        "decided": driver.decided,
        "decide_s": round((decided_at - began) / 1e9, 2) if decided_at else None,
        "own": driver.own.arguments(),
        "found": driver.chosen.arguments(),
        "said": driver.said,
        "trials": [
            {
                "settings": each.candidate.arguments(),
                "outcome": each.outcome,
                "why": each.why,
                "seconds": round(each.seconds, 2),
                "predicted": ends(each.predicted),
                "measured": ends(each.measured),
                "windows": [len(of) for of in each.rates.values()],
            }
            for each in driver.trials
        ],
        "batches_until_decided": sum(1 for t in times if t <= decided_at) - 1
        if decided_at
        else len(numbers),
        "batches": len(numbers),
        "seconds": round((times[-1] - began) / 1e9, 2),
        **steps_around(times, record),
        **compared(loop, numbers, marks, [first_after(times, each["t_ns"]) for each in record]),
    }


def ends(found: Any) -> list[float] | None:
    return found and [round(end, 3) for end in (found.low, found.mid, found.high)]


def _enough(began: int, now: int, decided_at: int, seconds: float) -> bool:
    if seconds:
        return now - began > seconds * 1e9
    return (
        bool(decided_at and now - decided_at > AFTER_S * 1e9) or now - began > TUNED_AT_MOST_S * 1e9
    )


def first_after(times: list[int], t_ns: int) -> int:
    return next((at for at, t in enumerate(times) if t >= t_ns), len(times))


def steps_around(times: list[int], record: list[dict[str, Any]]) -> dict[str, Any]:
    """The longest step beside a switch, and the median of ordinary ones under the settings on
    either side of it."""
    steps = [(after - before) / 1e6 for before, after in pairwise(times)]
    places = [first_after(times, each["t_ns"]) for each in record]
    makers, beside, spans = [""] * len(steps), set(), []
    previous: dict[str, Any] | None = None
    for place, each, end in zip(places, record, [*places[1:], len(steps)], strict=True):
        settings = each["settings"]
        makers[place:end] = [json.dumps(settings)] * len(makers[place:end])
        if previous is not None and previous != settings:
            # From when the other pool was begun to when what it had made ahead is used up.
            reach = [s["num_workers"] * s["prefetch_factor"] + 3 for s in (previous, settings)]
            span = range(max(1, place - reach[0]), min(len(steps), place + reach[1]))
            beside.update(span)
            spans.append((span, json.dumps(previous), json.dumps(settings)))
        previous = settings
    ordinary = {
        name: [
            s for at, s in enumerate(steps) if makers[at] == name and at not in beside and at > 0
        ]
        for name in set(makers)
    }
    all_ordinary = [s for of in ordinary.values() for s in of] or [0.0]
    found = []
    for span, *names in spans:
        medians = [median(ordinary[name]) for name in names if ordinary.get(name)]
        if span and medians:
            found.append((max(steps[at] for at in span), max(medians)))
    longest = max(found, key=lambda each: each[0] - 3 * each[1], default=None)
    return {
        "switches": len(spans),
        "longest_beside_ms": longest and round(longest[0], 1),
        "median_there_ms": longest and round(longest[1], 2),
        "longest_ordinary_ms": round(max(all_ordinary), 1),
    }


def mark(batch: Any) -> int:
    """Of the ends of its tensors: cheap enough to make no difference."""
    found = 0
    for part in batch:
        data = memoryview(part.contiguous().numpy()).cast("B")
        found = zlib.crc32(data[-2048:], zlib.crc32(data[:2048], found))
    return found


def compared(
    loop: Loop, numbers: list[list[int]], marks: list[int], switched: list[int]
) -> dict[str, Any]:
    """Whether all batches came in the order of an untuned run; some are made again and compared."""
    torch.manual_seed(0)
    expected: list[list[int]] = []
    while len(expected) < len(numbers):
        expected += islice(
            iter(loop.loader({"num_workers": 0}))._sampler_iter, len(numbers) - len(expected)
        )
    data = loop.data()
    collate = loop.loader({"num_workers": 0}).collate_fn
    some = {*random.Random(0).sample(range(len(numbers)), min(CHECKED, len(numbers)))}
    some |= {at for place in switched[:10] for at in (place, place + 1) if at < len(numbers)}
    same = all(mark(collate([data[index] for index in expected[at]])) == marks[at] for at in some)
    return {"in_order": numbers == expected, "same_values": same, "compared": len(some)}


def whole(loop: Loop, settings: Settings, batches: int) -> dict[str, Any]:
    began = time.perf_counter()
    Looping(loop, settings).go(batches)
    return {"seconds": time.perf_counter() - began}


def loadtune(loop: Loop) -> dict[str, Any]:
    from loadtune import Workload, tune

    numbers: list[list[int]] = []

    def train_step(model: Any, optimizer: Any, batch: Any, device: Any) -> float:
        loop.step(batch)
        if len(numbers) < 20:
            numbers.append(batch[-1].tolist())
        return 0.0

    workload = Workload(
        loop.name,
        loop.data,
        lambda: torch.nn.Linear(1, 1),
        train_step,
        lambda model: torch.optim.SGD(model.parameters(), lr=0.1),
        loop.batch_size,
        loop.collate,
    )
    began = time.perf_counter()
    result = tune(workload, verbose=False)
    took = time.perf_counter() - began
    best = result.best if result.speedup > 1 else None
    torch.manual_seed(0)
    users = list(islice(iter(loop.loader({"num_workers": 0}))._sampler_iter, len(numbers)))
    # It shuffles whatever it is given: that is right only where the user's code does nothing else.
    return {
        "seconds": round(took, 2),
        "found": best.knobs.loader_kwargs() if best else None,
        "sampler_kept": loop.order is None or numbers == users,
        "error": result.baseline.error,
    }


MODES: dict[str, Callable[..., dict[str, Any]]] = {
    "grid": grid,
    "turns": turns,
    "tuned": tuned,
    "whole": whole,
    "loadtune": loadtune,
}


def main(mode: str, name: str, *arguments: str) -> int:
    torch.set_num_threads(1)  # as in known_answers_side.py
    print(json.dumps(MODES[mode](LOOPS[name], *map(json.loads, arguments))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
