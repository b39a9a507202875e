"""A training process of benchmarks/seeds.py: records a workload, or measures its three loops in
turn.

    python seeds_side.py record WORKLOAD | measure WORKLOAD < CODE

CODE is what the first recommendation says to paste. Prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from statistics import median
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from seeds_workloads import WORKLOADS, Patches, Workload, pixels

RECORD_S, LEAST_BATCHES = 4.0, 40
ROUNDS = 5
LEAST_TIMED = 4  # batches in a part, however long they take


def record(workload: Workload) -> dict[str, Any]:
    """Loops under Loaderscope for some seconds and enough batches."""
    import loaderscope

    loader = loaderscope.watch(workload.before(workload.dataset()))
    batches = 0
    began = time.perf_counter()
    while batches < LEAST_BATCHES or time.perf_counter() - began < RECORD_S:
        for batch in loader:
            if workload.step is not None:
                workload.step(batch)
            batches += 1
            if batches >= LEAST_BATCHES and time.perf_counter() - began >= RECORD_S:
                break
    return {"batches": batches, "seconds": round(time.perf_counter() - began, 2)}


def part(loader: Iterable[Any], epoch: int, workload: Workload) -> float:
    """Seconds an epoch takes: the first batch as measured, the others at the rate of those of one
    part of it."""
    step = workload.step
    began = time.perf_counter()
    first = 0.0
    count = 0
    for batch in loader:
        if step is not None:
            step(batch)
        count += 1
        now = time.perf_counter()
        if count == 1:
            first = now - began
        elif count > LEAST_TIMED and now - began > workload.part_s:
            break
    a_batch = (time.perf_counter() - began - first) / max(1, count - 1)
    return first + a_batch * (epoch - 1)


def measure(name: str, workload: Workload, code: str) -> dict[str, Any]:
    dataset = workload.dataset()
    loops: dict[str, Any] = {"before": workload.before(dataset), "author": workload.author(dataset)}
    epochs = {each: len(loops[each]) for each in loops}
    result: dict[str, Any] = {}
    if code:
        given = {
            "dataset": dataset,
            "torch": torch,
            "np": np,
            "DataLoader": DataLoader,
            "__name__": "__main__",
        }
        names = {**given, **workload.names}
        exec(compile(code, "<pasted>", "exec"), names)
        if "loader" in names:
            loops["pasted"], epochs["pasted"] = names["loader"], len(names["loader"])
            result["same_shape"] = shape(next(iter(loops["pasted"]))) == shape(
                next(iter(loops["before"]))
            )
        else:
            result["pasted"] = "the code to paste defines no loader"
    seconds: dict[str, list[float]] = {each: [] for each in loops}
    for _ in range(ROUNDS):
        for each, loader in loops.items():
            seconds[each].append(part(loader, epochs[each], workload))
    result["epoch_s"] = {each: round(median(values), 4) for each, values in seconds.items()}
    if "pasted" in loops:
        result["gain"] = ratio(seconds["before"], seconds["pasted"])
        result["of_author"] = ratio(seconds["author"], seconds["pasted"])
    result["author_gain"] = ratio(seconds["before"], seconds["author"])
    if workload.reading:
        result["reading_share"] = reading(dataset)
    return result


def ratio(slower: list[float], faster: list[float]) -> float:
    return round(median(a / b for a, b in zip(slower, faster, strict=True)), 4)


def shape(batch: Any) -> Any:
    """Structure, types and shapes of a batch, but for its kind of sequence."""
    if isinstance(batch, torch.Tensor):
        return str(batch.dtype), tuple(batch.shape)
    if isinstance(batch, dict):
        return {key: shape(value) for key, value in batch.items()}
    if isinstance(batch, list | tuple):
        return [shape(value) for value in batch]
    return type(batch).__name__


def reading(dataset: Patches) -> float:
    """The true share of reading in making a sample: reading and decoding timed apart, a file after
    the other."""
    times = {"read": 0.0, "decode": 0.0}

    def timed(what: str, call: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        found = call()
        times[what] += time.perf_counter() - began
        return found

    for file in range(len(dataset.files)):
        encoded = timed("read", lambda file=file: dataset.read(file))
        timed("decode", lambda encoded=encoded: pixels(encoded))
    return round(times["read"] / sum(times.values()), 4)


def main(args: list[str]) -> int:
    workload = WORKLOADS[args[1]]
    found = (
        record(workload) if args[0] == "record" else measure(args[1], workload, sys.stdin.read())
    )
    print(json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
