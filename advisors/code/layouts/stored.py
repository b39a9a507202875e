"""One memory-mapped array a field: the samples of a data set made once, and only read from then on.

It saves decoding as well as reading, and takes what the decoded samples take. Only where samples
are tensors of one shape that are the same in every epoch.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...case.case import Case
from ...case.code_text import Source
from ...case.fetching import sample_bytes
from ...storage.files import length_of
from ..batched.held_code import not_keepable, structure_of
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


def stored_form(case: Case) -> StoredForm | None:
    """None where the samples of this data set are better not stored: they may change, have no
    arrays in NumPy, or are not asked for by number."""
    dataset, length, leaves = case.dataset, length_of(case.loader), case.inspection.leaves
    if (
        dataset is None
        or dataset.children
        or not length
        or not case.meets("map")
        or case.batch_size is None
        or not_keepable(case, _STRUCTURES) is not None
        or any(dtype in (leaf.dtype or "") for leaf in leaves for dtype in _NO_ARRAYS)
    ):
        return None
    call = loader_code(case, dataset=Source("Stored(dataset, target)"))
    then = "\n".join([*target_code(case, "samples"), call, ""])
    code = code_from("stored", then=then, KIND=structure_of(case))
    return StoredForm(code, (sample_bytes(case) or 0.0) * length, length, len(leaves))
