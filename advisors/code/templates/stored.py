"""One memory-mapped array a field."""

import os
import shutil
from pathlib import Path

import numpy as np
import torch
from numpy.lib.format import open_memmap
from torch.utils.data import DataLoader, Dataset, default_collate

from .placeholders import KIND


def fields_of(sample):
    """The fields of a sample, each as an array of one row."""
    fields = default_collate([sample])
    values = list(fields.values()) if isinstance(fields, dict) else fields
    return [value.numpy() for value in (values if isinstance(values, (list, tuple)) else [values])]


def store(source, folder):
    """Once: every sample of `source`, as rows of one array a field."""
    part, first = Path(f"{folder}.part"), fields_of(source[0])
    for index in (0, len(source) // 2, len(source) - 1):
        once, again = fields_of(source[index]), fields_of(source[index])
        if any(a.tobytes() != b.tobytes() for a, b in zip(once, again)):
            raise ValueError(
                f"sample {index} is another at each access: store what is made before the random "
                "step"
            )
    needed = len(source) * sum(value.nbytes for value in first)
    if needed > 0.9 * shutil.disk_usage(Path(folder).parent).free:
        raise OSError(f"{folder} would take {needed / 1e9:.1f} GB: there is not so much room")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    arrays = [
        open_memmap(part / f"{place}.npy", "w+", value.dtype, (len(source), *value.shape[1:]))
        for place, value in enumerate(first)
    ]
    for index in range(len(source)):
        for array, value in zip(arrays, fields_of(source[index])):
            array[index] = value[0]
    for array in arrays:
        array.flush()
    part.rename(folder)


class Stored(Dataset):
    """The samples that `store` has made: read from memory-mapped arrays."""

    def __init__(self, source, folder):
        self.folder, self.length, self.fields = Path(folder), len(source), None
        if not self.folder.exists():
            store(source, self.folder)
        if KIND == "dict":
            self.names = list(source[0])

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if self.fields is None:  # opened where it is used: once in each worker
            paths = sorted(self.folder.glob("*.npy"), key=lambda path: int(path.stem))
            self.fields = [np.load(path, mmap_mode="r") for path in paths]
            if len(self.fields[0]) != self.length:
                raise ValueError(
                    f"{self.folder} holds another data set: remove it, or store this one elsewhere"
                )
        row = [torch.as_tensor(np.array(field[index])) for field in self.fields]
        if KIND == "Tensor":
            return row[0]
        elif KIND == "dict":
            return dict(zip(self.names, row))
        else:
            return tuple(row)

    def __getstate__(self):
        return {**self.__dict__, "fields": None}
