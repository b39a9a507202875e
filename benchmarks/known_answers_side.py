"""A training process of benchmarks/known_answers.py: records one case, or measures its loops in
turn.

    python known_answers_side.py record CASE | measure CASE LEGS

LEGS is JSON: name → the arguments with which the case's loop is built, null for those of its fix, a
text for code that is pasted below the loop as found. Prints one line of JSON.
"""

from __future__ import annotations

import gc
import json
import math
import os
import sys
import time
from collections.abc import Mapping
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import torch

from known_cases import CASES
from known_cases.case import Case, Training
from known_cases.generated import named

MEASURE_S = 3.0
LEAST_ROUNDS, MOST_ROUNDS = 3, 15
LONG_ROUND_S = 6.0  # rounds as long as this are not repeated: spawning workers takes seconds
# Each turn lasts at least so long: workers and caches have grown cold meanwhile, as they never are
# in training.
TURN_S = 0.4

seconds_now = time.perf_counter  # device_side.py has a clock of its own


def block(training: Training) -> tuple[int, float]:
    """One block: the number of batches, and seconds."""
    batches, step = 0, training.step
    began = seconds_now()
    for batch in training.batches():
        step(batch)
        batches += 1
    return batches, seconds_now() - began


def record(case: Case) -> dict[str, Any]:
    return watched(case.build(), case.least_blocks, case.record_s if case.world == 1 else 0.0)


def watched(training: Training, least_blocks: int, seconds: float) -> dict[str, Any]:
    """Loops under Loaderscope until enough is recorded."""
    import loaderscope

    training.loader = loaderscope.watch(training.loader)
    batches = blocks = 0
    began = seconds_now()
    while blocks < least_blocks or seconds_now() - began < seconds:
        batches += block(training)[0]
        blocks += 1
    return {"batches": batches, "blocks": blocks, "seconds": round(seconds_now() - began, 2)}


def samples_per_s(training: Training, least_s: float) -> float:
    """Useful samples a second over one block, or over as many as last that long."""
    batches, seconds = block(training)
    while seconds < least_s:
        more, longer = block(training)
        batches, seconds = batches + more, seconds + longer
    return batches * training.size / seconds


def measure(case: Case, legs: Mapping[str, Mapping[str, Any] | str | None]) -> dict[str, Any]:
    trainings = {
        name: pasted(case.build(), leg)
        if isinstance(leg, str)
        else case.build(**(case.fix if leg is None else leg))
        for name, leg in legs.items()
    }
    return in_turn(
        trainings,
        MEASURE_S,
        LEAST_ROUNDS if case.world > 1 else MOST_ROUNDS,
        LONG_ROUND_S,
        case.world,
    )


def pasted(training: Training, code: str) -> Training:
    """The training after this code, which knows the names that the user has: what it changes is
    this training's own."""
    loader = training.loader
    dataset = loader.dataset
    own = type(dataset)
    # Code may give the class a method, which the other loops in this process must not get.
    dataset.__class__ = type(own.__name__, (own,), {"__module__": own.__module__})
    scope = {
        **vars(sys.modules[own.__module__]),
        "dataset": dataset,
        "loader": loader,
        "sampler": loader.sampler,
    }
    for part in (loader.collate_fn, loader.sampler, loader.batch_sampler, loader.worker_init_fn):
        scope[getattr(part, "__name__", type(part).__name__)] = part
    exec(compile(code, "<pasted>", "exec"), scope)
    training.loader = scope["loader"]
    if loader.batch_size and training.loader.batch_size:
        training.size *= training.loader.batch_size / loader.batch_size
    return training


def in_turn(
    trainings: Mapping[str, Training],
    seconds: float,
    most_rounds: int,
    long_round_s: float = math.inf,
    world: int = 1,
) -> dict[str, Any]:
    """Every loop once a round, in an order that turns round each time; ratios are taken within a
    round. Not counted is a first round: predictions are of the epochs after the first, in which
    workers that are kept have been started. Several ranks do as many rounds, and blocks, each:
    `most_rounds`."""
    rates: dict[str, list[float]] = {name: [] for name in trainings}
    for training in trainings.values():
        block(training)
    order = list(trainings)
    began = seconds_now()
    rounds = 0
    while rounds < LEAST_ROUNDS or (rounds < most_rounds and seconds_now() - began < seconds):
        for name in order:
            rates[name].append(samples_per_s(trainings[name], TURN_S if world == 1 else 0.0))
            gc.collect()
        order.reverse()
        rounds += 1
        if world == 1 and seconds_now() - began > long_round_s * rounds:
            break
    first, *others = trainings
    ratios = {
        name: [other / base for base, other in zip(rates[first], rates[name], strict=True)]
        for name in others
    }
    return {
        "samples_per_s": {name: round(median(each), 1) for name, each in rates.items()},
        "gain": {name: round(median(each), 4) for name, each in ratios.items()},
        "rounds": rounds,
    }


def main(args: list[str]) -> int:
    # With more, a small tensor operation waits for a core that something else keeps busy: this
    # machine's other work would decide what is slow, and not what was planted (docs/causes.md,
    # "Waiting for a core").
    torch.set_num_threads(1)
    case = named(args[1]) or CASES[args[1]]
    if args[0] == "record":
        found = record(case)
    else:
        with TemporaryDirectory() as folder:
            os.chdir(folder)  # what pasted code stores is of this case alone
            found = measure(case, json.loads(args[2]))
            os.chdir("/")
    print(json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
