"""Two ranks that train in step while settings are tried; rank 1 dies in another trial."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from loaderscope.tuning import trial, trying, tuner, window

MORE_S = 40.0


class Slow(Dataset):
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __len__(self) -> int:
        return 160

    def __getitem__(self, index: int) -> Any:
        time.sleep(self.seconds)
        return torch.tensor([index, index * index])


class Apart(Slow): ...


def tuner_of(loader: DataLoader) -> Any:
    from loaderscope.tuning.tune import _drivers, recorder_of

    return _drivers[recorder_of(loader)]


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())  # whole, beside the other rank's


def main() -> None:
    tuner.LOOK_S, tuner.LOOK_BATCHES, window.WINDOW_S, trial.MOST_PAIRS = 0.2, 20, 0.1, 3
    trying.MOST = 1
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    order = DistributedSampler(range(160), 2, rank, shuffle=True)
    loader = DataLoader(Slow(0.002), batch_size=2, sampler=order)
    seen: list[Any] = []
    begun, epochs = time.monotonic(), 0
    done = torch.zeros(1)
    while not done:
        order.set_epoch(epochs)
        drawn = torch.tensor(list(order)).reshape(40, 2)
        expected = torch.stack([drawn, drawn * drawn], dim=2)
        epochs += 1
        for batch in loader:
            dist.all_reduce(torch.ones(1))
            seen.append(torch.equal(batch, expected[len(seen) % 40]))
        done = torch.tensor([float(tuner_of(loader).decided or time.monotonic() - begun > MORE_S)])
        dist.all_reduce(done, op=dist.ReduceOp.MIN)
    found = tuner_of(loader)
    same = all(seen) and len(seen) == 40 * epochs
    say(f"rank {rank}: {same} {found.decided} {found.chosen.num_workers}; {found.said}")
    apart = DataLoader(Apart(0.002), batch_size=2, sampler=order)
    begun = time.monotonic()
    while time.monotonic() - begun < MORE_S:
        for _ in apart:
            dist.all_reduce(torch.ones(1))
            following = tuner_of(apart).following
            # Torch's workers do not notice the end of a parent that dies as they start.
            if following is not None and following.turn == 2 and following.window is not None:
                say("rank 1 dies in a trial")
                os._exit(3)


if __name__ == "__main__":
    main()
    sys.exit(9)
