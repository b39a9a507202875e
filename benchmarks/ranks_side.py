"""One rank of benchmarks/ranks.py: a training by DistributedDataParallel over gloo, in which one
rank is slow.

    ranks_side.py CASE STEPS TIMES [traceml]

Rank SLOW takes longer than the others in what the case names. Rank 0 writes what each step took, in
ns, to TIMES. With "traceml", steps are marked for traceml-ai as its manual says for a loop of one's
own.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

SLOW = 2
BATCH, SIDE = 8, 32
ROUNDS, MORE_ROUNDS = 4, 60  # of Augment, in the others and in the slow rank
READ_S, MORE_READ_S = (
    0.0002,
    0.003,
)  # nothing where the transform is slow: there the images are in memory
FORWARD_S = 0.02


class Augment:
    """Smooths an image some times over: computes."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        for _ in range(self.rounds):
            image = (image + image.roll(1, 0) + image.roll(1, 1)) / 3
        return image


class Images(Dataset[torch.Tensor]):
    """Images that are read, which takes a while without computing, and augmented."""

    def __init__(self, count: int, read_s: float, augment: Augment) -> None:
        self.count, self.read_s, self.augment = count, read_s, augment

    def __len__(self) -> int:
        return self.count

    def read(self, index: int) -> torch.Tensor:
        if self.read_s:
            time.sleep(self.read_s)
        return torch.full((SIDE, SIDE), float(index % 7))

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.augment(self.read(index))


class Model(nn.Module):
    def __init__(self, delay_s: float) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(), nn.Linear(SIDE * SIDE, 64), nn.ReLU(), nn.Linear(64, 1)
        )
        self.delay_s = delay_s

    def forward(self, images: torch.Tensor) -> Any:
        if self.delay_s:
            time.sleep(self.delay_s)
        return self.layers(images)


def main(case: str, steps: int, times: Path, marked: bool) -> None:
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    slow = rank == SLOW
    augment = Augment(MORE_ROUNDS if slow and case == "augment" else ROUNDS)
    read_s = 0.0 if case == "augment" else MORE_READ_S if slow and case == "read" else READ_S
    data = Images(steps * BATCH * world, read_s, augment)
    sampler: DistributedSampler[Any] = DistributedSampler(data, world, rank)
    loader = DataLoader(data, BATCH, sampler=sampler, num_workers=1 if case == "read" else 0)
    model = DistributedDataParallel(Model(FORWARD_S if slow and case == "forward" else 0.0))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    around: Any = contextlib.nullcontext
    if marked:
        import traceml_ai

        traceml_ai.init(mode="auto")
        around = traceml_ai.trace_step
    ends = []
    for images in loader:
        with around(model.module):
            optimizer.zero_grad(set_to_none=True)
            loss = model(images).pow(2).mean()
            loss.backward()
            optimizer.step()
        ends.append(time.perf_counter_ns())
    if rank == 0:
        times.write_text(json.dumps([after - before for before, after in pairwise(ends)]))
    dist.barrier()  # whoever ends first must not cut off the others
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), "traceml" in sys.argv[4:])
