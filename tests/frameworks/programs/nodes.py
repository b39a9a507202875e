import torch
from small import BATCH, Rows, told
from torch.utils.data import RandomSampler
from torchdata.nodes import Batcher, Loader, Mapper, SamplerWrapper

if __name__ == "__main__":
    torch.manual_seed(0)
    rows = Rows()
    node = Batcher(Mapper(SamplerWrapper(RandomSampler(rows)), rows.__getitem__), batch_size=BATCH)
    loader = Loader(Mapper(node, torch.stack))
    total = 0.0
    for _ in range(2):
        for number, batch in enumerate(loader):
            total += float(batch.sum()) * number
    told(total)
