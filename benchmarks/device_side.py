"""A training process of benchmarks/device.py: as known_answers_side.py, with the stand-in's own
account beside.

python device_side.py record CASE | measure CASE LEGS
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import torch

import known_answers_side
from device_cases import CASES, stage
from device_cases.case import OnDevice
from known_answers_side import block, measure

RECORD_S = 3.0


def in_own_time() -> None:
    """From here on, what other programs do on this machine does not matter. Before anything of
    Loaderscope is imported: the compiled hooks read the machine's clock, as does the sampler, which
    would see another time than ours."""
    os.environ.update(LOADERSCOPE_PURE="1", LOADERSCOPE_SYSTEM="0")
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core, which the loop uses
    clock = stage.clock = stage.standin_device.OwnTime()
    from loaderscope.profiler.base import clock as profilers

    profilers.now_ns, profilers.thread_cpu_ns = clock.now_ns, clock.cpu_ns
    known_answers_side.seconds_now = lambda: clock.now_ns() / 1e9


def record(case: OnDevice) -> dict[str, Any]:
    import loaderscope

    bare = _synchronised(
        case.build()
    )  # a loop of its own: of workers that were there before it, little is recorded
    training, engine = case.build(), stage.device().engine
    engine.account.clear()
    training.loader = loaderscope.watch(training.loader)
    engine.synchronised.clear()
    began, batches, blocks = known_answers_side.seconds_now(), 0, 0
    while blocks < case.least_blocks or known_answers_side.seconds_now() - began < RECORD_S:
        batches += block(training)[0]
        blocks += 1
    return {
        "batches": batches,
        "blocks": blocks,
        "seconds": round(known_answers_side.seconds_now() - began, 2),
        "synchronised_a_block": {
            "bare": bare,
            "recorded": sum(engine.synchronised.values()) / blocks,
        },
        "account": [
            (work.kind, work.stream, work.issued_ns, work.start_ns, work.end_ns)
            for work in engine.account
        ],
    }


def _synchronised(training: Any) -> float:
    engine = stage.device().engine
    block(training)
    before = sum(engine.synchronised.values())
    block(training)
    return float(sum(engine.synchronised.values()) - before)


def main(args: list[str]) -> int:
    torch.set_num_threads(1)
    case = CASES[args[1]]
    if case.own_time:
        in_own_time()
    found = record(case) if args[0] == "record" else measure(case, json.loads(args[2]))
    print(json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
