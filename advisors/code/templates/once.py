"""What is done once, before training: results stored, records converted, files written for the way
they are read."""

import json
import os

import numpy as np
import yaml
import zarr
from numpy.lib.format import open_memmap
from PIL import Image

from .placeholders import BACKEND, RAGGED

if RAGGED:

    def store(make, length, target):
        """Once: what `make(index)` gives for each sample, one after another, and where each
        ends."""
        items = [np.asarray(make(index)) for index in range(length)]
        np.save(f"{target}.ends.npy", np.cumsum([len(item) for item in items]))
        np.save(target, np.concatenate(items))

else:

    def store(make, length, target):
        """Once: what `make(index)` gives for each sample, as a row of one array. All must have one
        shape."""
        first = np.asarray(make(0))
        rows = open_memmap(target, "w+", first.dtype, (length, *first.shape))
        for index in range(length):
            rows[index] = make(index)
        rows.flush()


def shrink(paths, folder, size, quality=95):
    """Once: each picture no larger than needed, in a folder of its own (not among the originals),
    by its place in the list."""
    os.makedirs(folder, exist_ok=True)
    for place, path in enumerate(paths):
        with Image.open(path) as picture:
            picture.draft("RGB", size)  # JPEG leaves out what a smaller picture does not need
            small = picture.convert("RGB")
        small.thumbnail(size)
        small.save(os.path.join(folder, f"{place}.jpg"), quality=quality)


def rechunk(source, target, rows=1):
    """Once: chunks of as many rows as are read at a time."""
    old = zarr.open(source, mode="r")
    new = zarr.open(
        target, mode="w", shape=old.shape, chunks=(rows, *old.shape[1:]), dtype=old.dtype
    )
    for begin in range(0, len(old), 4096):
        new[begin : begin + 4096] = old[begin : begin + 4096]


if BACKEND == "json":

    def convert(texts, fields):
        """Once: these fields of all records, as arrays."""
        records = [json.loads(text) for text in texts]
        return {field: [np.asarray(record[field]) for record in records] for field in fields}

else:

    def convert(texts):
        """Once: the records, parsed by the C loader, as JSON (or better, as arrays)."""
        return [json.dumps(yaml.load(text, Loader=yaml.CSafeLoader)) for text in texts]
