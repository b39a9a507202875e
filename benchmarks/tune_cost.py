"""What tuning costs a loop of 1 ms per batch, once settings are decided and while they are tried.

    python benchmarks/tune_cost.py [--quick] [--only CASE] [--json FILE] [--store FOLDER]

Each case is a fresh process with two loaders of the same data, one bare and one tuned. Their loops
take turns in short blocks, in random order. A turn gives the ratio of the two times per batch; the
result is the median over all turns, with its 95 % interval.

"Looking" is the time inside the tuned iterator's `next()` less the time inside torch's own, while
the tuned loop is alone, as a share of the bare loop's time: checks of state, comparisons, starting
workers, deciding. While settings are tried, the ratio also holds what those settings cost, such as
workers that take the loop's cores, so the bound is on looking. The cases:

    decided   tuning is over, and the loader keeps its own settings (0 or 2 workers), or has others
              that make batches as fast (2 workers, another prefetch_factor), which are looked at for
              as long as they are in force
    tried     settings take turns, workers start, and batches are compared, all the time

A step is one batch and 1 ms of computing, so a ratio of 1.01 is 10 µs per batch.

Prints JSON on standard output and a table on standard error. Exit code 0: looking takes no more
than its bound (1 % once decided, 5 % while tried); 1: some does.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partialmethod
from pathlib import Path
from statistics import median
from typing import Any

from overhead import machine, store, tell
from overhead_stats import summary
from quiet import await_quiet

CASES = {
    "decided-0": (0, "own"),
    "decided-2": (2, "own"),
    "others-2": (2, "others"),
    "tried-0": (0, "tried"),
    "tried-2": (2, "tried"),
}
BOUNDS = {"own": 0.01, "others": 0.01, "tried": 0.05}
STEP_NS = 1_000_000
BLOCK, WARM_UP, SIZE = 100, 200, 16  # batches, batches, samples a batch


def loader_with(workers: int) -> Any:
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    rows = TensorDataset(torch.arange(100_000), torch.zeros(100_000, 8))
    return DataLoader(rows, SIZE, shuffle=True, num_workers=workers)


def hand_out_tuned(loader: Any, state: str) -> Any:
    """The driver of a loader that is tuned from its next iteration on. What it would decide is
    given: the benchmark is not of the decision."""
    from loaderscope.profiler.record.iterate.watch import hand_out, watch
    from loaderscope.tuning import trying, tuner
    from loaderscope.tuning.candidates import Candidate
    from loaderscope.tuning.evidence.settings import Settings, settings_of
    from loaderscope.tuning.switch.switching import handing_out
    from loaderscope.tuning.trial import Trial

    own = settings_of(loader)
    others = [Settings(1 + n % 4, 1 + n // 4) for n in range(24)]  # more than there is time for
    found = [Candidate(each, None) for each in others if each != own]
    tuner.candidates_for = lambda *_: found
    trying.MOST, trying.ENOUGH_S = 10**6, 1e9
    driver = tuner.Tuner(loader, tuner.Options(1e9))
    if state == "own":
        driver.decide("the loader keeps its own settings")
    elif state == "others":
        given = Settings(own.num_workers, own.prefetch_factor + 1)
        # What they are watched against: they never become slower.
        driver.trials.append(Trial(own, given))
        driver.trials[0].rates[own].append(1e-3)
        driver.decide("others are given", given)
    hand_out(watch(loader), handing_out(driver))
    return driver


class Loop:
    """Over a loader, epoch after epoch, a block at a time."""

    def __init__(self, loader: Any) -> None:
        self._batches: Iterator[Any] = itertools.chain.from_iterable(itertools.repeat(loader))

    def ns_per_batch(self, batches: int) -> float:
        began = time.perf_counter_ns()
        for _ in range(batches):
            next(self._batches)
            until = time.perf_counter_ns() + STEP_NS
            while time.perf_counter_ns() < until:
                pass
        return (time.perf_counter_ns() - began) / batches


class Clocked:
    """How long something took in all, in ns."""

    def __init__(self, function: Any) -> None:
        self.function, self.ns = function, 0

    def __call__(self, *given: Any) -> Any:
        began = time.perf_counter_ns()
        try:
            return self.function(*given)
        finally:
            self.ns += time.perf_counter_ns() - began


def clock_next() -> tuple[Clocked, Clocked]:
    """Clocks of the tuned iterator's `next()`, and of that of torch's iterators inside it."""
    from loaderscope.tuning.switch import switching

    whole, inside = Clocked(switching.Switching.__next__), Clocked(next)
    switching.Switching.__next__ = partialmethod(whole)
    vars(switching)["next"] = inside
    return whole, inside


def measure(workers: int, state: str, turns: int, seed: int) -> dict[str, Any]:
    """One case, in this process."""
    rng = random.Random(seed)
    tuned = loader_with(workers)
    driver = hand_out_tuned(tuned, state)
    loops = {"bare": Loop(loader_with(workers)), "tuned": Loop(tuned)}
    whole, inside = clock_next()
    for loop in loops.values():
        loop.ns_per_batch(WARM_UP)
    while state != "own" and len(driver.record.switches) < 2:  # the first is that of the epoch
        loops["tuned"].ns_per_batch(BLOCK)
    # The tuned loop alone: tuning rests by the clock, and may look for a share of it, which must
    # not be another loop's time.
    before = whole.ns - inside.ns
    loops["tuned"].ns_per_batch(BLOCK * turns)
    looked_ns = (whole.ns - inside.ns - before) / (BLOCK * turns)
    ratios, bare = [], []
    for _ in range(turns):
        took = {name: loops[name].ns_per_batch(BLOCK) for name in rng.sample([*loops], 2)}
        bare.append(took["bare"])
        ratios.append(took["tuned"] / took["bare"])
    return {
        "workers": workers,
        "state": state,
        "bare_us_per_batch": summary([each / 1e3 for each in bare], 1),
        "ratio": summary(ratios, 4),
        "looking": round(looked_ns / median(bare), 4),
        "bound": BOUNDS[state],
        "settings": driver.chosen.arguments(),
        "trials": len(driver.trials),
        "switches": len(driver.record.switches),
        "said": driver.said,
    }


def side(name: str, turns: int, seed: int) -> dict[str, Any]:
    """One case, in a fresh process."""
    tell(f"{name}…")
    await_quiet()
    with tempfile.TemporaryDirectory(prefix="tune-cost-") as folder:
        env = {**os.environ, "LOADERSCOPE_DIR": folder, "LOADERSCOPE_STACKS": "0"}
        command = [sys.executable, __file__, "--side", name, "--turns", str(turns)]
        done = subprocess.run(
            [*command, "--seed", str(seed)], env=env, stdout=subprocess.PIPE, check=True
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def show(cases: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("case", "bare, µs", "tuned / bare", "95 % interval", "looking", "bound")
    for name, case in cases.items():
        ratio, ends = case["ratio"], case["ratio"]["ci95"] or ("", "")
        bare = case["bare_us_per_batch"]["median"]
        table.add_row(
            name,
            str(bare),
            str(ratio["median"]),
            f"{ends[0]} to {ends[1]}",
            f"{case['looking']:.2%}",
            f"{case['bound']:.0%}",
        )
    Console(stderr=True).print(table)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="few turns: shows that it runs, not what it costs"
    )
    parser.add_argument("--only", choices=CASES, action="append", help="may be given again")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the blocks")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE too")
    parser.add_argument(
        "--store", type=Path, metavar="FOLDER", help="keep the results in FOLDER/tune-cost"
    )
    parser.add_argument("--side", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--turns", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        print(json.dumps(measure(*CASES[options.side], options.turns, options.seed)))
        return 0
    turns = 10 if options.quick else 200
    part = {"own": 1, "others": 1, "tried": 4}  # of them: there are only so many settings to try
    cases = {
        name: side(name, turns // part[CASES[name][1]], options.seed)
        for name in options.only or CASES
    }
    results = {
        "benchmark": "tune_cost",
        "date": datetime.date.today().isoformat(),
        "quick": options.quick,
        "machine": machine(),
        "cases": cases,
    }
    text = json.dumps(results, indent=1)
    print(text)
    show(cases)
    if options.json is not None:
        options.json.write_text(text + "\n", encoding="utf-8")
    if options.store is not None:
        tell(f"Kept as {store(options.store / 'tune-cost', text, options.quick)}")
    return int(any(case["looking"] > case["bound"] for case in cases.values()))


if __name__ == "__main__":
    sys.exit(main())
