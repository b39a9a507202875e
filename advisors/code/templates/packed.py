"""Many small files in one, with an index."""

import copy
import io
import mmap
import os
from pathlib import Path

import numpy as np
from torch.utils.data import DataLoader


class PackedFile(io.BytesIO):
    """One of the packed files: it goes wherever a file opened for reading does."""

    def __init__(self, data, name):
        super().__init__(data)
        self.name = name

    def read_bytes(self):
        return self.getvalue()

    def read_text(self, encoding="utf-8", errors=None):
        return self.getvalue().decode(encoding, errors or "strict")


def folder_of(paths):
    """The innermost folder that holds them all."""
    return Path(os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in paths]))


def pack(paths, target):
    """Once: the files one after another in `target`, and where each ends in `target`.npy."""
    target.parent.mkdir(exist_ok=True)
    part, ends = Path(f"{target}.part"), [0]
    with part.open("wb") as out:
        for path in paths:
            out.write(Path(path).read_bytes())
            ends.append(out.tell())
    np.save(f"{target}.npy", np.array(ends))
    part.replace(target)


class PackedFiles:
    """Stands in for a list of paths (or of tuples that begin with one): its items are the packed
    files, open."""

    def __init__(self, items, target, places=None):
        self.items, self.target, self.store, self.pid = items, str(target), None, None
        self.places = range(len(items)) if places is None else places

    def __len__(self):
        return len(self.places)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return PackedFiles(self.items, self.target, self.places[index])
        if self.pid != os.getpid():  # opened where it is used: once in each worker
            self.store, self.pid = self.open(), os.getpid()
        place = self.places[index]
        item = self.items[place]
        if isinstance(item, (tuple, list)):
            return (PackedFile(self.data(place), str(item[0])), *item[1:])
        return PackedFile(self.data(place), str(item))

    def __getstate__(self):
        return {**self.__dict__, "store": None, "pid": None}

    def open(self):
        self.ends = np.load(f"{self.target}.npy")
        with open(self.target, "rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def data(self, place):
        return self.store[self.ends[place] : self.ends[place + 1]]


def through(opens):
    """`open`, which also takes one of the packed files as it is."""

    def opened(file, mode="r", *args, **options):
        if not isinstance(file, PackedFile):
            return opens(file, mode, *args, **options)
        encoding = options.get("encoding")
        return file if "b" in mode else io.TextIOWrapper(file, encoding=encoding)

    return opened
