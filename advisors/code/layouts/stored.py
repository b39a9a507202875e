"""One memory-mapped array a field: the samples of a data set made once, and only read from then on.

It saves decoding as well as reading, and takes what the decoded samples take. Only where samples
are tensors of one shape that are the same in every epoch.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...case.case import Case
from ...case.code_text import Source
from ...storage.files import length_of
from ..batched.held_code import decoded_bytes, not_keepable, structure_of
from ..loader_code import loader_code
from ..template import code_from
from .place import target_code

MOST_LEFT = 0.98  # of making a sample: what leaves more is no remedy
_STRUCTURES = ("Tensor", "tuple", "list", "dict")
# What torch gives NumPy no array of.
_NO_ARRAYS = ("bfloat16", "complex32", "float8")

# Taking a row out of a mapped array of which the pages are in memory, at best and at worst: µs a
# field, and bytes a µs. Measured on two cores: 4 to 10 µs for 400 to 4,000 bytes, 9 to 19 µs for 60
# kB, 110 to 140 µs for 1.2 MB.
_ROW_US, _ROW_BYTES_PER_US = (2.0, 20.0), (12_000.0, 2_000.0)


@dataclass(frozen=True)
class StoredForm:
    """The code, how many bytes the stored samples take, how many they are, and of how many fields
    each."""

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
    if (
        dataset is None
        or not length
        or case.config.get("dataset_kind") != "map"
        or case.batch_size is None
    ):
        return "it is no data set of a known length whose samples are asked for by number"
    if dataset.children:
        return "it holds data sets that may change its samples"
    structure, leaves = structure_of(case), case.inspection.leaves
    why = not_keepable(case, _STRUCTURES)
    if why is not None:
        return why
    if any(dtype in (leaf.dtype or "") for leaf in leaves for dtype in _NO_ARRAYS):
        return "NumPy has no arrays of its type"
    call = loader_code(case, dataset=Source("Stored(dataset, target)"))
    then = "\n".join([*target_code(case, "samples"), call, ""])
    code = code_from("stored", then=then, KIND=structure)
    return StoredForm(code, decoded_bytes(case) or 0.0, length, len(leaves))
