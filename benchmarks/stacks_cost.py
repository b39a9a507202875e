"""What a burst of stacks costs the training: `python benchmarks/stacks_cost.py [--rounds 6] [--only
NAME] [--first]`.

A training runs on and on, asked for one burst after another (of the usual rate) with as long a
pause after each. The batches a second inside bursts are set against those of the pauses on both
sides, so that whatever drifts (clock frequency, page cache, neighbours) meets both. One run a
workload: decoding of PNG pictures and cheap in-memory samples, without workers and with two. Prints
JSON; `slowdown` is 1 - inside / outside, the median of the rounds and their range, and `cpu_share`
what py-spy itself took of one core. Exit code 1 where a slowdown is above the bound of 3 %.

With --first: what the first FIRST_S seconds of a recording cost, in which the sampler starts and
takes its first stacks by itself. A loop of cheap samples goes on for so long in fresh processes, in
turn with and without Loaderscope; `slowdown` is 1 - batches with / without, the median of the pairs
and their range, and `sampler_cpu_s` what the sampler and the py-spies it ran used meanwhile, both
starts included.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.profiler.store.stacks.stack_request import request_burst, wait_for_burst
from loaderscope.profiler.store.stacks.stack_samples import StackCapture
from quiet import await_quiet

WORKLOADS = {
    "png-0": ("png", 0),
    "png-2": ("png", 2),
    "memory-0": ("memory", 0),
    "memory-2": ("memory", 2),
}
BOUND = 0.03
ASIDE_S = (
    0.5  # at the edges of a burst that belong to neither side: py-spy starts, the sampler merges
)
PATIENCE_S = 120.0
FIRST_S = 15.0


def train(kind: str, workers: int) -> None:
    """Trains until it is killed."""
    import torch
    from PIL import Image
    from torch.utils.data import DataLoader, Dataset

    import loaderscope

    class Pictures(Dataset[Any]):
        def __init__(self) -> None:
            pixels = np.random.default_rng(0).integers(0, 255, (96, 96, 3), dtype=np.uint8)
            file = io.BytesIO()
            Image.fromarray(pixels).save(file, "PNG")
            self.png = file.getvalue()

        def __len__(self) -> int:
            return 100_000_000

        def __getitem__(self, index: int) -> Any:
            return torch.from_numpy(np.array(Image.open(io.BytesIO(self.png)).convert("RGB")))

    class Rows(Dataset[Any]):
        def __init__(self) -> None:
            self.rows = torch.randn(1000, 64)

        def __len__(self) -> int:
            return 100_000_000

        def __getitem__(self, index: int) -> Any:
            return self.rows[index % 1000]

    torch.set_num_threads(1)
    loader = loaderscope.watch(
        DataLoader(Pictures() if kind == "png" else Rows(), batch_size=32, num_workers=workers),
        stacks=False,
    )
    weights = torch.randn(256, 256)
    print("ready", flush=True)
    for _ in loader:
        weights @ weights


def first_seconds(recorded: bool) -> None:
    """Trains for FIRST_S seconds and prints how many batches that were."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    torch.set_num_threads(1)
    loader: Any = DataLoader(TensorDataset(torch.randn(20_000, 64)), batch_size=32)
    if recorded:
        import loaderscope

        loader = loaderscope.watch(loader)
    weights = torch.randn(256, 256)
    batches, ends = 0, time.perf_counter() + FIRST_S
    while time.perf_counter() < ends:
        for _ in loader:
            weights @ weights
            batches += 1
            if time.perf_counter() >= ends:
                break
    print(batches)


def measure_first(rounds: int) -> dict[str, Any]:
    """Pairs of fresh processes, the order of each turned round."""
    await_quiet()
    slowdowns, used = [], []
    for number in range(rounds):
        batches = {}
        for recorded in (bool(number % 2), not number % 2):
            with tempfile.TemporaryDirectory() as folder:
                environment = {
                    **os.environ,
                    "LOADERSCOPE_DIR": folder,
                    "PYTHONPATH": os.pathsep.join(sys.path),
                }
                environment.pop("LOADERSCOPE_STACKS", None)
                command = [sys.executable, __file__, "--train", "recorded" if recorded else "bare"]
                said = subprocess.run(
                    command, env=environment, stdout=subprocess.PIPE, text=True, check=True
                )
                batches[recorded] = int(said.stdout.split()[-1])
                if recorded:
                    lane = (
                        open_run(next(Path(folder).glob("2*"))).systems[0].machine["sampler_cpu_ns"]
                    )
                    used.append(float(lane.max()) / 1e9)
        slowdowns.append(1 - batches[True] / batches[False])
    return {
        "seconds": FIRST_S,
        "pairs": rounds,
        "slowdown": round(statistics.median(slowdowns), 4),
        "slowdown_range": [round(min(slowdowns), 4), round(max(slowdowns), 4)],
        "sampler_cpu_s": round(statistics.median(used), 3),
    }


def measure(kind: str, workers: int, rounds: int, seconds: int) -> dict[str, Any]:
    await_quiet()
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "LOADERSCOPE_DIR": folder,
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        environment.pop("LOADERSCOPE_STACKS", None)
        command = [sys.executable, __file__, "--train", kind, "--workers", str(workers)]
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as training:
            try:
                assert training.stdout is not None
                training.stdout.readline()
                path = _recording(Path(folder))
                bursts = []
                time.sleep(seconds + 2 * ASIDE_S)
                for _ in range(rounds):
                    burst = wait_for_burst(path, request_burst(path, seconds=seconds), PATIENCE_S)
                    if burst is None or not burst.samples:
                        raise SystemExit(
                            f"no burst: {burst.reason if burst is not None else 'nobody answers'}"
                        )
                    bursts.append(burst)
                    time.sleep(seconds + 2 * ASIDE_S)
            finally:
                training.kill()
        return _compared(path, bursts, seconds)


def _recording(runs: Path) -> Path:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = list(runs.glob("2*/system-*/host.json"))
        if found:
            return found[0].parent.parent
        time.sleep(0.1)
    raise SystemExit("the training did not begin")


def _compared(path: Path, bursts: list[StackCapture], seconds: int) -> dict[str, Any]:
    loader = open_run(path).loaders[0]
    times = np.sort(loader.batches["t_ns"] + loader.batches["wait_ns"])
    aside, span = int(ASIDE_S * 1e9), seconds * 10**9

    def rate(begin: int, end: int) -> float:
        return float(np.searchsorted(times, end) - np.searchsorted(times, begin)) / (
            (end - begin) / 1e9
        )

    told = [json.loads(file.read_text()) for file in path.glob("system-*/stacks-*.json")]
    slowdowns, outside = [], []
    for burst in bursts:
        inside = rate(burst.t_begin_ns + aside, burst.t_end_ns - aside)
        before = rate(burst.t_begin_ns - span, burst.t_begin_ns)
        # What follows the stacks is the look at the GIL, a part of the burst: it is stepped over.
        after = rate(burst.t_end_ns + 4 * aside + span // 4, burst.t_end_ns + 4 * aside + span)
        outside.append((before + after) / 2)
        slowdowns.append(1 - inside / outside[-1])
    return {
        "batches_per_s": round(statistics.median(outside), 1),
        "slowdown": round(statistics.median(slowdowns), 4),
        "slowdown_range": [round(min(slowdowns), 4), round(max(slowdowns), 4)],
        "within_bound": statistics.median(slowdowns) <= BOUND,
        "rate_hz": bursts[0].rate_hz,
        "processes": len(bursts[0].samples),
        "samples_a_burst": round(statistics.mean(sum(burst.samples.values()) for burst in bursts)),
        "cpu_share": round(statistics.mean(one["cpu_s"] / (seconds + 2) for one in told), 4),
        "ended_early": sum(bool(one["ended_early"]) for one in told),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--only", choices=WORKLOADS)
    parser.add_argument(
        "--store",
        type=Path,
        metavar="FOLDER",
        help="keep the results in FOLDER/stacks, by the date",
    )
    parser.add_argument(
        "--first", action="store_true", help="the first seconds of a recording instead"
    )
    parser.add_argument("--train", help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train in ("recorded", "bare"):
        first_seconds(options.train == "recorded")
        return 0
    if options.train:
        train(options.train, options.workers)
        return 0
    results: dict[str, Any] = {}
    if options.first:
        results["first"] = measure_first(options.rounds)
        print(
            f"the first {FIRST_S:.0f} s: {results['first']['slowdown']:.1%} slower", file=sys.stderr
        )
    for name, (kind, workers) in WORKLOADS.items():
        if options.only in (None, name) and not options.first:
            results[name] = measure(kind, workers, options.rounds, options.seconds)
            print(f"{name}: {results[name]['slowdown']:.1%} slower inside bursts", file=sys.stderr)
    machine = {
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load_1m": os.getloadavg()[0],
    }
    told = {
        "benchmark": "stacks_cost",
        "bound": BOUND,
        "rounds": options.rounds,
        "seconds": options.seconds,
    }
    text = json.dumps({**told, "workloads": results, "machine": machine}, indent=1)
    print(text)
    if options.store is not None:
        from overhead import store

        print(f"Kept as {store(options.store / 'stacks', text, quick=False)}", file=sys.stderr)
    return 0 if all(found.get("within_bound", True) for found in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
