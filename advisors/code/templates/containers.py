"""Containers written or opened so that they can be read sample by sample."""

import copy
from pathlib import Path

import h5py
import lmdb
import pyarrow.parquet as pq
from torch.utils.data import DataLoader


def rechunk(source, target):
    """Once: the same file, in which a chunk is one row: what one access reads."""
    part = Path(f"{target}.part")
    with h5py.File(source, "r") as old, h5py.File(part, "w") as new:

        def copied(name, item):
            if isinstance(item, h5py.Group):
                made = new.require_group(name)
            elif item.ndim == 0 or not item.size:
                old.copy(item, new.require_group(item.parent.name), Path(name).name)
                return
            else:
                packing = {
                    name: getattr(item, name) for name in ("compression", "compression_opts")
                }
                chunks = (1, *item.shape[1:])
                made = new.create_dataset(name, item.shape, item.dtype, chunks=chunks, **packing)
                step = (item.chunks or (256,))[0]
                for row in range(0, len(item), step):
                    made[row : row + step] = item[row : row + step]
            made.attrs.update(item.attrs)

        new.attrs.update(old.attrs)
        old.visititems(copied)
    part.replace(target)


def regroup(source, target, rows):
    """Once: the same table, in groups of so many rows: a group is read as a whole."""
    part = Path(f"{target}.part")
    with pq.ParquetFile(source) as old, pq.ParquetWriter(part, old.schema_arrow) as new:
        for batch in old.iter_batches(batch_size=rows):
            new.write_batch(batch, row_group_size=rows)
    part.replace(target)


class KeptOpen:
    """Opens a file where it is first used, once in each process."""

    def __init__(self, opens, path, **options):
        self.opens, self.path, self.options, self.file = opens, path, options, None

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.opened(), name)

    def __getitem__(self, name):
        return self.opened()[name]

    def opened(self):
        if self.file is None:
            self.file = self.opens(self.path, **self.options)
        return self.file

    def __getstate__(self):
        return {**self.__dict__, "file": None}
