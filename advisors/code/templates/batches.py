"""Data sets that give whole batches, and what draws these."""

import torch
from torch.utils.data import Dataset, Sampler


class Selected(Dataset):
    """Some rows of a data set that takes whole batches, as Subset is of single samples."""

    def __init__(self, source, indices):
        self.source, self.indices = source, torch.as_tensor(indices)

    def __len__(self):
        return len(self.indices)

    def __getitem__(self, rows):
        return self.source[self.indices[torch.as_tensor(rows)]]


class BatchIndices(Sampler):
    """The indices of whole batches, as tensors, in the order in which batch_size and shuffle would
    draw them."""

    def __init__(self, length, batch_size, shuffle=False, drop_last=False, generator=None):
        self.length, self.batch_size, self.shuffle = length, batch_size, shuffle
        self.drop_last, self.generator = drop_last, generator

    def __len__(self):
        full, rest = divmod(self.length, self.batch_size)
        return full + (rest > 0 and not self.drop_last)

    def __iter__(self):
        rows = torch.arange(self.length) if not self.shuffle else self.shuffled()
        rows = rows[: len(self) * self.batch_size]
        # A million small tensors at once would fill memory.
        for part in rows.split(1024 * self.batch_size):
            yield from part.split(self.batch_size)

    def shuffled(self):
        generator = self.generator
        if generator is None:
            generator = torch.Generator()
            generator.manual_seed(int(torch.empty((), dtype=torch.int64).random_()))
        return torch.randperm(self.length, generator=generator)


def as_is(batch):
    return batch
