"""What draws samples, or whole passes of batches."""

import random

import numpy as np
from torch.utils.data import Sampler

from .placeholders import ORDER


class LengthBuckets(Sampler):
    """The samples that `sampler` draws, in batches of like length; `lengths` has one number a
    sample."""

    def __init__(self, lengths, sampler, batch_size, drop_last=False, pool=50):
        self.lengths, self.sampler, self.batch_size = lengths, sampler, batch_size
        self.drop_last, self.pool = drop_last, pool

    def __len__(self):
        full, rest = divmod(len(self.sampler), self.batch_size)
        return full + (rest > 0 and not self.drop_last)

    def __iter__(self):
        order = list(self.sampler)
        order = order[: len(self) * self.batch_size]
        step = self.batch_size * self.pool
        for begin in range(0, len(order), step):
            near = sorted(order[begin : begin + step], key=self.lengths.__getitem__)
            batches = [near[i : i + self.batch_size] for i in range(0, len(near), self.batch_size)]
            random.shuffle(batches)
            yield from batches


def length_of(sample):
    """The longest of its fields; better: from metadata, without loading."""
    fields = sample.values() if isinstance(sample, dict) else sample
    lengths = [
        len(field) for field in fields if hasattr(field, "__len__") and getattr(field, "ndim", 1)
    ]
    return max(lengths, default=len(sample))


class ArrayBatches:
    """Batches cut out of one array: `draw(epoch)` gives the order of a whole epoch at once."""

    def __init__(self, draw, samples, batch_size, drop_last=False):
        self.draw, self.samples, self.epoch = draw, samples, 0
        self.batch_size, self.drop_last = batch_size, drop_last

    def __len__(self):
        full, rest = divmod(self.samples, self.batch_size)
        return full + (rest > 0 and not self.drop_last)

    def __iter__(self):
        order = self.draw(self.epoch)
        self.epoch += 1
        for batch in range(len(self)):
            yield order[batch * self.batch_size : (batch + 1) * self.batch_size].tolist()


def draw(epoch, seed=0):
    return ORDER


def endless(loader):
    """Every batch of every pass, over one iterator a pass."""
    while True:
        yield from loader
