"""Data sets that give whole batches, and what draws these."""

import torch
from torch.utils.data import Dataset, Sampler, default_collate

from .placeholders import KIND


class Selected(Dataset):
    """Some rows of a data set that takes whole batches, as Subset is of single samples."""

    def __init__(self, source, indices):
        self.source, self.indices = source, torch.as_tensor(indices)

    def __len__(self):
        return len(self.indices)

    def __getitem__(self, rows):
        return self.source[self.indices[torch.as_tensor(rows)]]


class Joined(Dataset):
    """Data sets that take whole batches, one after another, as ConcatDataset is of single
    samples."""

    def __init__(self, parts):
        self.parts = parts
        self.ends = torch.tensor([len(part) for part in parts]).cumsum(0)
        self.begins = [0, *self.ends[:-1].tolist()]

    def __len__(self):
        return int(self.ends[-1])

    def __getitem__(self, indices):
        rows = torch.as_tensor(indices)
        part = torch.bucketize(rows, self.ends, right=True)
        order = part.argsort()
        groups = rows[order].split(part.bincount(minlength=len(self.parts)).tolist())
        pieces = [p[g - begin] for p, begin, g in zip(self.parts, self.begins, groups) if len(g)]
        back = order.argsort()
        if KIND == "value":
            return torch.cat(pieces).index_select(0, back)
        elif KIND == "list":
            return [torch.cat(column).index_select(0, back) for column in zip(*pieces)]
        else:
            return {
                key: torch.cat([piece[key] for piece in pieces]).index_select(0, back)
                for key in pieces[0]
            }


class Held(Dataset):
    """The samples of a data set, made once and kept as one tensor a field."""

    def __init__(self, source):
        self.length = len(source)
        self.fields = default_collate([source[index] for index in range(self.length)])

    def __len__(self):
        return self.length

    def __getitem__(self, rows):
        if KIND == "Tensor":
            return self.fields[rows]
        elif KIND == "list":
            return [field[rows] for field in self.fields]
        else:
            return {name: field[rows] for name, field in self.fields.items()}


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
