"""What handing batches from a worker to the training process costs on this machine: the constants
of the what-if model.

    python benchmarks/handover.py [--batches N]

CPU times are differences of process times, so they hold on a machine that does other things too;
waking up, starting and stopping workers are wall times and want a quiet one. Prints, as JSON, the
constants that stand in advisors/whatif/costs.py under these names.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

SAMPLES = 2
REPETITIONS = 3
STARTS = 7


@dataclass(frozen=True)
class Shape:
    """A batch of so many tensors of so many bytes together, and an array of so many bytes that is
    pickled."""

    tensors: int
    tensor_bytes: int
    pickled_bytes: int = 0


SHAPES = (
    Shape(1, 64),
    Shape(40, 40 * 64),
    Shape(1, 4 << 20),
    Shape(1, 16 << 20),
    Shape(1, 64, 1 << 20),
)


class Ready(Dataset[Any]):
    """Samples that are there already."""

    def __init__(self, shape: Shape, batches: int) -> None:
        self.batches = batches
        floats = max(1, shape.tensor_bytes // shape.tensors // SAMPLES // 4)
        self.sample = [torch.zeros(floats) for _ in range(shape.tensors)]
        self.array = np.zeros(shape.pickled_bytes, np.uint8) if shape.pickled_bytes else None

    def __len__(self) -> int:
        return self.batches * SAMPLES

    def __getitem__(self, index: int) -> Any:
        return self.sample, self.array


def collate(samples: list[Any]) -> Any:
    """Tensors as torch's own collate does it, the array as it is."""
    from torch.utils.data import default_collate

    return default_collate([tensors for tensors, _ in samples]), samples[0][1]


def loader(shape: Shape, batches: int, **options: Any) -> DataLoader[Any]:
    return DataLoader(Ready(shape, batches), SAMPLES, collate_fn=collate, **options)


def worker_cpu_s(pid: int) -> float:
    """CPU time of a process, all its threads."""
    import psutil

    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def a_batch(shape: Shape, batches: int, prefetch: int = 2) -> tuple[float, float, float]:
    """(CPU in main, CPU in the worker beyond what main needs for the same work, wall), ns a batch
    with one worker."""
    began = process_time()
    for _ in loader(shape, batches):
        pass
    alone = process_time() - began
    loop = iter(loader(shape, batches, num_workers=1, prefetch_factor=prefetch))
    pid = loop._workers[0].pid  # type: ignore[attr-defined]
    for _ in range(batches // 10):
        next(loop)
    count = batches - batches // 10 - prefetch - 1
    began, wall, worker = process_time(), perf_counter(), worker_cpu_s(pid)
    for _ in range(count):
        next(loop)
    main, elapsed = process_time() - began, perf_counter() - wall
    worker = worker_cpu_s(pid) - worker
    del loop
    return main / count * 1e9, (worker / count - alone / batches) * 1e9, elapsed / count * 1e9


def crowded(shape: Shape, batches: int) -> float:
    """Wall time a batch, in ns, of small batches from two workers."""
    loop = iter(loader(shape, batches, num_workers=2))
    for _ in range(batches // 10):
        next(loop)
    began, count = perf_counter(), 0
    for _ in loop:
        count += 1
    return (perf_counter() - began) / count * 1e9


def released(shape: Shape, batches: int) -> float:
    """Wall time, in ns, of letting go of a batch that two workers have made."""
    loop = iter(loader(shape, batches, num_workers=2))
    batch, times = next(loop), []
    for following in loop:
        began = perf_counter()
        batch = following
        times.append(perf_counter() - began)
    assert batch is not None
    return median(times[len(times) // 10 :]) * 1e9


def costs_a_batch(batches: int) -> dict[str, float]:
    """The constants a batch, fitted to all shapes by least squares of relative errors."""
    main, worker, design = [], [], []
    for shape in SHAPES:
        # Large batches take longer: fewer of them are enough for the clock's ticks of 10 ms.
        number = max(60, batches // (1 + (shape.tensor_bytes + shape.pickled_bytes >> 20)))
        found = [a_batch(shape, number)[:2] for _ in range(REPETITIONS)]
        main.append(median(m for m, _ in found))
        worker.append(max(1e3, median(w for _, w in found)))
        design.append([1.0, shape.tensors, shape.tensor_bytes, shape.pickled_bytes])
    matrix = np.array(design)

    def fitted(values: list[float]) -> list[float]:
        target = np.array(values)
        solved = np.linalg.lstsq(matrix / target[:, None], np.ones(len(target)), rcond=None)[0]
        return [float(max(0.0, x)) for x in solved]

    pack, receive = fitted(worker), fitted(main)
    # What main takes a batch includes waking up, and for each tensor a round trip to a thread of
    # the worker: with more workers than main can serve, that is the time between batches.
    one, many = (min(crowded(shape, batches) for _ in range(REPETITIONS)) for shape in SHAPES[:2])
    receive[1] = max(receive[1], (many - one) / (SHAPES[1].tensors - SHAPES[0].tensors))
    receive[0] = max(receive[0], one - receive[1])
    hop = min(a_batch(SHAPES[0], batches, prefetch=1)[2] for _ in range(REPETITIONS))
    small, large = released(SHAPES[1], batches // 4), released(SHAPES[2], batches // 4)
    a_tensor = small / SHAPES[1].tensors
    return {
        "RELEASE_TENSOR_NS": a_tensor,
        "RELEASE_NS_PER_BYTE": max(0.0, large - a_tensor) / SHAPES[2].tensor_bytes,
        "PACK_BATCH_NS": pack[0],
        "PACK_TENSOR_NS": pack[1],
        "SHARED_PACK_NS_PER_BYTE": pack[2],
        "PICKLED_PACK_NS_PER_BYTE": pack[3],
        "RECEIVE_NS": receive[0],
        "UNPACK_TENSOR_NS": receive[1],
        "SHARED_UNPACK_NS_PER_BYTE": receive[2],
        "PICKLED_UNPACK_NS_PER_BYTE": receive[3],
        "TASK_HOP_NS": max(0.0, (hop - pack[0] - pack[1] - receive[0] - receive[1]) / 2),
    }


def starting(method: str) -> tuple[float, float, float]:
    """(in main, in the worker until its first batch, ending it), ns for one worker."""
    found = []
    for _ in range(STARTS if method == "fork" else 3):
        gc.collect()
        began = perf_counter()
        loop = iter(loader(SHAPES[0], 8, num_workers=1, multiprocessing_context=method))
        started = perf_counter()
        next(loop)
        first = perf_counter()
        for _ in loop:
            pass
        drained = perf_counter()
        list(loop)
        del loop
        found.append(
            (started - began, first - started, max(drained - first, perf_counter() - drained))
        )
    return tuple(median(times) * 1e9 for times in zip(*found, strict=True))  # type: ignore[return-value]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batches", type=int, default=1000, help="batches of each measurement")
    options = parser.parse_args()
    from overhead import machine

    torch.set_num_threads(1)
    constants: dict[str, Any] = costs_a_batch(options.batches)
    by_method = {method: starting(method) for method in ("fork", "spawn", "forkserver")}
    constants["START_MAIN_NS"] = {method: times[0] for method, times in by_method.items()}
    constants["START_WORKER_NS"] = {method: times[1] for method, times in by_method.items()}
    constants["STOP_NS"] = by_method["fork"][2]
    facts = {**machine(), "load_1m": round(os.getloadavg()[0], 2)}
    print(
        json.dumps(
            {"benchmark": "handover", "machine": facts, "constants": rounded(constants)}, indent=1
        )
    )
    return 0


def rounded(value: Any) -> Any:
    """Three digits are more than these figures deserve."""
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return float(f"{value:.3g}") if isinstance(value, float) else value


if __name__ == "__main__":
    sys.exit(main())
