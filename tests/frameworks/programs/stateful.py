import torch
from small import BATCH, Rows, told
from torchdata.stateful_dataloader import StatefulDataLoader

if __name__ == "__main__":
    torch.manual_seed(0)
    loader = StatefulDataLoader(Rows(), BATCH, shuffle=True)
    total = 0.0
    for _ in range(2):
        for number, batch in enumerate(loader):
            total += float(batch.sum()) * number
    told(total)
