"""Two ranks of torchrun, mp.spawn or a launcher of tasks; the group is made before or after."""

import os
import sys

import torch.distributed as dist
import torch.multiprocessing as mp
from small import BATCH, Rows
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

# By launcher of tasks, what it tells of rank and world.
TOLD = [
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
]


def train(rank: int, world: int, meeting: str) -> None:
    if "late" in sys.argv:
        for _ in DataLoader(Rows(8), BATCH):
            pass
    if "alone" not in sys.argv:
        dist.init_process_group("gloo", f"file://{meeting}", rank=rank, world_size=world)
    data = Rows()
    loader = DataLoader(data, BATCH, sampler=DistributedSampler(data, world, rank))
    together = dist.is_initialized()
    for _ in range(2):
        for batch in loader:
            if together:
                dist.all_reduce(batch)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    if "spawn" in sys.argv:
        mp.spawn(train, (2, sys.argv[1]), nprocs=2)
    elif "task" in sys.argv:
        rank, world = next(names for names in TOLD if names[0] in os.environ)
        train(int(os.environ[rank]), int(os.environ[world]), sys.argv[1])
    else:
        train(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), sys.argv[1])
