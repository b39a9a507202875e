"""One memory-mapped array a field: the samples of a data set made once, and only read from then on.

It saves decoding as well as reading, and takes what the decoded samples take. Only where samples are tensors of one
shape that are the same in every epoch.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...case.case import Case
from ...case.code_text import Source
from ...storage.files import length_of
from ..batched.drawn import own_collate
from ..batched.held_code import decoded_bytes, may_change, not_flat_tensors, structure_of
from ..hot.functions import MOST_LEFT
from ..loader_code import loader_code
from .place import target_code

# Objects that only read: they change no sample.
_READERS = (
    "zipfile.",
    "tarfile.",
    "_io.",
    "io.",
    "sqlite3.",
    "h5py.",
    "pyarrow.",
    "lmdb.",
    "_sqlite3.",
    "builtins.bytes",
)
_RESULTS = {
    "Tensor": "row(0)",
    "tuple": "tuple(map(row, range(len(fields))))",
    "list": "tuple(map(row, range(len(fields))))",
    "dict": "dict(zip(self.names, map(row, range(len(fields)))))",
}
# What torch gives NumPy no array of.
_NO_ARRAYS = ("bfloat16", "complex32", "float8")

_CODE = '''import shutil
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, default_collate


def fields_of(sample):
    """The fields of a sample, each as an array of one row."""
    fields = default_collate([sample])
    values = list(fields.values()) if isinstance(fields, dict) else fields
    return [value.numpy() for value in (values if isinstance(values, (list, tuple)) else [values])]


def store(source, folder):
    """Once: every sample of `source`, as rows of one array a field."""
    part, first = Path(f"{folder}.part"), fields_of(source[0])
    for index in (0, len(source) // 2, len(source) - 1):
        if any(a.tobytes() != b.tobytes() for a, b in zip(fields_of(source[index]), fields_of(source[index]))):
            raise ValueError(f"sample {index} is another at each access: store what is made before the random step")
    needed = len(source) * sum(value.nbytes for value in first)
    if needed > 0.9 * shutil.disk_usage(Path(folder).parent).free:
        raise OSError(f"{folder} would take {needed / 1e9:.1f} GB: there is not so much room")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    arrays = [
        np.lib.format.open_memmap(part / f"{place}.npy", "w+", value.dtype, (len(source), *value.shape[1:]))
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
{names}
    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if self.fields is None:  # opened where it is used: once in each worker
            paths = sorted(self.folder.glob("*.npy"), key=lambda path: int(path.stem))
            self.fields = [np.load(path, mmap_mode="r") for path in paths]
        fields = self.fields

        def row(place):
            return torch.as_tensor(np.array(fields[place][index]))

        return {result}

    def __getstate__(self):
        return {**self.__dict__, "fields": None}


'''


# Taking a row out of a mapped array of which the pages are in memory, at best and at worst: µs a field, and bytes a µs.
# Measured on two cores: 4 to 10 µs for 400 to 4,000 bytes, 9 to 19 µs for 60 kB, 110 to 140 µs for 1.2 MB.
_ROW_US, _ROW_BYTES_PER_US = (2.0, 20.0), (12_000.0, 2_000.0)


@dataclass(frozen=True)
class StoredForm:
    """The code, how many bytes the stored samples take, how many they are, and of how many fields each."""

    code: str
    nbytes: float
    length: int
    fields: int

    def left(self, sample_us: float) -> tuple[float, float]:
        """What remains of making a sample that took so long, at best and at worst."""
        best, worst = (
            fixed * self.fields + self.nbytes / self.length / rate
            for fixed, rate in zip(_ROW_US, _ROW_BYTES_PER_US, strict=True)
        )
        return min(MOST_LEFT, best / sample_us), min(MOST_LEFT, worst / sample_us)


def stored_form(case: Case) -> StoredForm | str:
    """The form, or why the samples of this data set are better not stored."""
    dataset, length = case.dataset, length_of(case.loader)
    if dataset is None or not length or case.config.get("dataset_kind") != "map" or case.batch_size is None:
        return "it is no data set of a known length whose samples are asked for by number"
    if own_collate(case):
        return "its samples are collated by a function of its own"
    if may_change(dataset.names):
        return "its samples may change from one epoch to the next"
    if dataset.children or any(_may_change(a.kind, a.type) for a in dataset.attributes):
        return "it holds functions or objects that may change its samples"
    structure, leaves = structure_of(case), case.inspection.leaves
    odd = not_flat_tensors(case, _RESULTS)
    if odd is not None:
        return odd
    if any(dtype in (leaf.dtype or "") for leaf in leaves for dtype in _NO_ARRAYS):
        return "NumPy has no arrays of its type"
    nbytes = decoded_bytes(case)
    if nbytes is None:
        return "the size of its batches was not measured"
    told = "        self.names = list(source[0])\n" if structure == "dict" else ""
    code = _CODE.replace("{names}", told).replace("{result}", _RESULTS[structure])
    code += f"target = {target_code(case, 'samples')}\n"
    code += loader_code(case, dataset=Source("Stored(dataset, target)")) + "\n"
    return StoredForm(code, nbytes, length, len(leaves))


def _may_change(kind: str, type_: str) -> bool:
    return kind == "callable" or (kind == "other" and not type_.startswith(_READERS))
