"""What is done once, before training: results stored for the way they are read."""

import copy
import os

import numpy as np
from numpy.lib.format import open_memmap


def store(make, length, target):
    """Once: what `make(index)` gives for each sample, as a row of one array. All must have one
    shape."""
    first = np.asarray(make(0))
    rows = open_memmap(target, "w+", first.dtype, (length, *first.shape))
    for index in range(length):
        rows[index] = make(index)
    rows.flush()


class KeptSamples:
    """The samples of a data set, each made once and kept in memory."""

    def __init__(self, dataset):
        self.dataset, self.kept = dataset, {}

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        key = int(index)
        if key not in self.kept:
            self.kept[key] = self.dataset[index]
        return self.kept[key]

    def __getattr__(self, name):  # all else is the data set's own
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dataset, name)


class CopiedSamples(KeptSamples):
    """Copies of them: a collate function might change a sample in place."""

    def __getitem__(self, index):
        return copy.deepcopy(super().__getitem__(index))
