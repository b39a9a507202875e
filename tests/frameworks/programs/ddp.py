"""Two ranks: of torchrun, of mp.spawn, or of whoever sets the environment; the group is made before or after."""

import os
import sys

import torch.distributed as dist
import torch.multiprocessing as mp
from small import BATCH, Rows
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def train(rank: int, world: int, meeting: str) -> None:
    if "late" in sys.argv:
        for _ in DataLoader(Rows(8), BATCH):
            pass
    if "alone" not in sys.argv:
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    data = Rows()
    loader = DataLoader(data, BATCH, sampler=DistributedSampler(data, world, rank))
    for _ in range(2):
        for _ in loader:
            pass
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    if "spawn" in sys.argv:
        mp.spawn(train, (2, sys.argv[1]), nprocs=2)
    elif "slurm" in sys.argv:
        train(int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_STEP_NUM_TASKS"]), sys.argv[1])
    else:
        train(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), sys.argv[1])
