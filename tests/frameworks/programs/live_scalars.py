"""A training whose figures go live to the libraries named after the folder, set up as users do."""

import os
import sys

import torch
from small import BATCH, Rows, told
from torch.utils.data import DataLoader

from loaderscope.integrations import scalars

FOLDER, NAMES = sys.argv[1], sys.argv[2:]


def wandb():
    import wandb

    silent = wandb.Settings(console="off", silent=True)
    return scalars.WandB(wandb.init(mode="offline", dir=FOLDER, settings=silent))


BACKENDS = {
    "tensorboard": lambda: scalars.TensorBoard(os.path.join(FOLDER, "events")),
    "prometheus": lambda: scalars.Prometheus(os.path.join(FOLDER, "train.prom")),
    "wandb": wandb,
}


def log(epoch, loss):
    """The training's own, with steps of its own choice in the last epoch."""
    if "wandb" in NAMES:
        import wandb

        wandb.run.log({"loss": loss}, step=100) if epoch == 3 else wandb.run.log({"loss": loss})


if __name__ == "__main__":
    total = torch.zeros(())
    with scalars.live(*(BACKENDS[name]() for name in NAMES), every_s=0.1):
        for epoch in range(4):
            for batch in DataLoader(Rows(), BATCH):
                total += batch.mean()
            log(epoch, float(total))
    if "wandb" in NAMES:
        import wandb

        wandb.finish()
    told(total)
