import sys

import torch
from accelerate import Accelerator, DataLoaderConfiguration
from small import BATCH, Rows, told
from torch.utils.data import DataLoader

if __name__ == "__main__":
    torch.manual_seed(0)
    dispatched = DataLoaderConfiguration(dispatch_batches=True)
    configuration = dispatched if "dispatch" in sys.argv else None
    accelerator = Accelerator(cpu=True, dataloader_config=configuration)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    train, val = DataLoader(Rows(), BATCH, shuffle=True), DataLoader(Rows(16), BATCH)
    model, optimizer, train, val = accelerator.prepare(model, optimizer, train, val)
    total = torch.zeros(())
    for _ in range(2):
        for batch in train:
            loss = model(batch).pow(2).mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        with torch.no_grad():
            for batch in val:
                total += model(batch).mean()
    if accelerator.is_main_process:
        told(total)
    accelerator.end_training()
