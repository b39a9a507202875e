"""A training process of benchmarks/device.py: as known_answers_side.py, with the stand-in's own account beside.

python device_side.py record CASE | measure CASE LEGS
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import torch

import loaderscope
from device_cases import CASES
from device_cases.stage import device
from known_answers_side import block, measure
from known_cases.case import Case

RECORD_S = 3.0


class Marked:
    """A loader, and when its batches were asked for and handed over."""

    def __init__(self, loader: Any, moments: list[tuple[int, int]]) -> None:
        self.loader = loader
        self.moments = moments

    def __iter__(self) -> Iterator[Any]:
        now = time.monotonic_ns
        entered = now()
        batches = iter(self.loader)
        while True:
            batch = next(batches, self)
            self.moments.append((entered, now()))
            if batch is self:
                return
            yield batch
            entered = now()


def record(case: Case) -> dict[str, Any]:
    training, engine = case.build(), device().engine
    bare = _synchronised(training)
    engine.account.clear()
    moments: list[tuple[int, int]] = []
    training.loader = Marked(loaderscope.watch(training.loader), moments)
    engine.synchronised.clear()
    began, batches, blocks = time.perf_counter(), 0, 0
    while blocks < case.least_blocks or time.perf_counter() - began < RECORD_S:
        batches += block(training)[0]
        blocks += 1
    return {
        "batches": batches,
        "blocks": blocks,
        "seconds": round(time.perf_counter() - began, 2),
        "synchronised_a_block": {"bare": bare, "recorded": sum(engine.synchronised.values()) / blocks},
        "truth": truth(engine.account, moments, batches // blocks),
    }


def _synchronised(training: Any) -> float:
    engine = device().engine
    block(training)
    before = sum(engine.synchronised.values())
    block(training)
    return sum(engine.synchronised.values()) - before


def truth(account: list[Any], moments: list[tuple[int, int]], epoch: int) -> dict[str, list[int]]:
    """A batch: time of its copies, device idle while it was waited for, and the device's time from its hand-over to
    the next call of next(), by the account. Streams are told apart by nobody here: cases with a side stream have no
    device time of their own."""
    found: dict[str, list[int]] = {"h2d_ns": [], "stall_ns": [], "compute_device_ns": []}
    at = reached = 0
    step = [(moments[k], moments[k + 1]) for k in range(len(moments) - 1)]
    for k, ((entered, handed), (next_entered, _)) in enumerate(step):
        if (k + 1) % (epoch + 1) == 0:
            continue  # the end of an epoch, which is no batch
        before = at
        while at < len(account) and account[at].issued_ns < handed:
            reached = max(reached, account[at].end_ns)
            at += 1
        begun = max(reached, handed)
        busy = reached
        idle_from = max(entered, *(work.end_ns for work in account[max(0, before - 64) : at]), 0) if at else entered
        copied = 0
        while at < len(account) and account[at].issued_ns < next_entered:
            work = account[at]
            copied += (work.end_ns - work.start_ns) * (work.kind == "h2d")
            busy = max(busy, work.end_ns)
            at += 1
        reached = busy
        found["h2d_ns"].append(copied)
        found["stall_ns"].append(max(0, handed - idle_from))
        found["compute_device_ns"].append(max(busy, next_entered) - begun)
    return found


def main(args: list[str]) -> int:
    torch.set_num_threads(1)
    case = CASES[args[1]]
    found = record(case) if args[0] == "record" else measure(case, json.loads(args[2]))
    print(json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
