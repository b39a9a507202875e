"""Stacks that are known: `python stacks_programs.py KIND WORKERS burst|report|BATCHES`."""

import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

import loaderscope
from loaderscope.profiler.store.stacks import stack_request

PATIENCE_S = 90.0


def spin(seconds: float) -> int:
    end = time.perf_counter() + seconds
    count = 0
    while time.perf_counter() < end:
        count += 1
    return count


def fetch_work() -> None:
    spin(0.004)


def collate_work() -> None:
    spin(0.008)


def train_step() -> None:
    spin(0.006)


class Items(Dataset):
    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> Any:
        fetch_work()
        return torch.full((8,), float(index))


def own_collate(samples: list[Any]) -> Any:
    collate_work()
    return torch.stack(samples)


def make_loader(kind: str, workers: int) -> DataLoader[Any]:
    collate: Any = None if kind in ("default", "off") else own_collate
    more: dict[str, Any] = (
        {"multiprocessing_context": "fork", "persistent_workers": True} if workers else {}
    )
    return DataLoader(Items(), batch_size=4, num_workers=workers, collate_fn=collate, **more)


def sampling(runs: Path) -> bool:
    """Whether a py-spy has begun to read stacks, which it says."""
    with suppress(OSError):  # removed at its end
        said = [path.read_text() for path in runs.glob("2*/system-*/.stacks-*.txt")]
        return any("Sampling" in each for each in said)
    return False


def main() -> None:
    kind, workers, until = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    deaths: list[int] = []
    signal.signal(signal.SIGCHLD, lambda number, frame: deaths.append(number))
    torch.manual_seed(3)
    loader = make_loader(kind, workers)
    loaderscope.watch(loader, stacks=kind != "off")
    print("ready", flush=True)
    total, under_way = 0.0, 0
    begun = time.monotonic()
    runs = Path(os.environ["LOADERSCOPE_DIR"])
    for count, batch in enumerate(loader, start=1):
        total += float(batch.sum())
        # On busy cores a loop that computes hardly waits: no stacks are taken.
        if until != "report":
            train_step()
        elif count % 20 == 0:
            under_way += sampling(runs)
        taken = count % 20 == 0 and until == "burst" and any(runs.glob("2*/system-*/stacks-0.json"))
        if taken or under_way == 10 or str(count) == until:
            break
        if time.monotonic() - begun > PATIENCE_S:
            break
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    seen = {
        "pid": os.getpid(),
        "total": total if until != "burst" else None,
        "random": float(torch.rand(1)),
        "signals": len(deaths),
        "children": len(children),
        "fds": len(os.listdir("/proc/self/fd")),
        "state": Path("/proc/self/status").read_text().split("State:")[1].split()[0],
    }
    if until == "report":
        stack_request.SO_FAR_S = PATIENCE_S  # busy cores may need more than the usual third
        code = loaderscope.report(loader).loaders[0].code
        seen["fetch_samples"] = code.stages["fetch"].samples if code and code.stages else 0
        seen["why_none"] = code.reason if code else "no code"
    print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    main()
