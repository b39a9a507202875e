"""What recording costs a batch in the training process while a device is timed.

    python benchmarks/device_cost.py [--json FILE] [--store FOLDER]

A bare loop and a recorded one take turns in one process, over the same batches of one to many
tensors, each copied to torch's `meta` device: such a copy does next to nothing, so what is left is
ours. CPU time of the thread; the difference is of medians over rounds. Each step is timed; copies
are looked at of a loop's first batches, and then of one in some 64, whose cost is spread over all.
What a batch costs that is looked at is told too, as `looked_at_us`: where a step takes a thousand
times that, all are.

The device's events are made up and cost some 0.1 µs. What a backend's own take (on CUDA 1 to 2 µs
to record; two a batch, and two a copy that is looked at) comes on top.

Prints JSON on standard output. Exit code 0: within the bounds; 1: not.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import torch
from torch.utils.data import DataLoader

import loaderscope
from loaderscope.profiler.record.device import device_clock
from loaderscope.profiler.record.device.accelerator import Accelerator
from overhead import machine, store, tell

COPIES = (0, 1, 2, 8)
BATCHES, ROUNDS = 1_000, 21
ONE_COPY_BOUND_US, FURTHER_BOUND_US = 5.0, 1.0


class Event:
    def record(self) -> None:
        pass

    def query(self) -> bool:
        return True

    def elapsed_time(self, end: Any) -> float:
        return 0.01


def made_up() -> Accelerator:
    return Accelerator(
        "meta", SimpleNamespace(Event=lambda enable_timing: Event(), current_device=lambda: 0)
    )


def block(loader: Any) -> float:
    """CPU time a batch in µs."""
    began = time.thread_time_ns()
    for batch in loader:
        for tensor in batch:
            tensor.to("meta", non_blocking=True)
    return (time.thread_time_ns() - began) / BATCHES / 1e3


def cost_us(copies: int) -> dict[str, float]:
    found = measured(copies)
    apart, device_clock.APART = device_clock.APART, (1, 1)
    try:
        return {**found, "looked_at_us": measured(copies)["cost_us"]}
    finally:
        device_clock.APART = apart


def measured(copies: int) -> dict[str, float]:
    data = [[torch.ones(300) for _ in range(copies)]] * BATCHES
    bare = DataLoader(data, batch_size=None, collate_fn=same)  # type: ignore[arg-type]
    recorded = loaderscope.watch(DataLoader(data, batch_size=None, collate_fn=same))  # type: ignore[arg-type]
    block(bare), block(recorded)
    times = [(block(bare), block(recorded)) for _ in range(ROUNDS)]
    without, with_ = (median(each) for each in zip(*times, strict=True))
    loaderscope.unwatch(recorded)
    return {
        "bare_us": round(without, 3),
        "recorded_us": round(with_, 3),
        "cost_us": round(with_ - without, 3),
    }


def same(batch: Any) -> Any:
    return batch


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE too")
    parser.add_argument(
        "--store", type=Path, metavar="FOLDER", help="keep the results in FOLDER, named by the date"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LOADERSCOPE_DIR"] = folder
        timed = device_clock.in_use
        device_clock.in_use = made_up
        try:
            for copies in COPIES:
                found[copies] = cost_us(copies)
                tell(f"{copies} copies a batch: {found[copies]}")
        finally:
            device_clock.in_use = timed
    further = (found[8]["cost_us"] - found[1]["cost_us"]) / 7
    passed = found[1]["cost_us"] <= ONE_COPY_BOUND_US and further <= FURTHER_BOUND_US
    told = {
        "benchmark": "device_cost",
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "copies": found,
        "one_copy_us": found[1]["cost_us"],
        "further_copy_us": round(further, 3),
        "bounds_us": [ONE_COPY_BOUND_US, FURTHER_BOUND_US],
        "pass": passed,
    }
    text = json.dumps(told, indent=1)
    print(text)
    if options.json is not None:
        options.json.write_text(text + "\n", encoding="utf-8")
    if options.store is not None:
        tell(f"Kept as {store(options.store / 'device-cost', text, quick=False)}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
