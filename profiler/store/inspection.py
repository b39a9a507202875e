"""What was seen of a loader's parts without running them: its data set, samplers, collate function,
and a batch.

`inspect_loader` makes it in the training process when the first loop begins, `LoaderRun.inspection`
holds it. Everything may be missing: an older run, an orphaned iterator, a part that could not be
looked at.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from ..base.tolerant import Count, Text

MAX_CHILDREN = 64
MAX_ATTRIBUTES = 128
MAX_LEAVES = 128
MAX_DEPTH = 4


class Attribute(Struct, frozen=True):
    """One attribute of a data set.

    `kind`: "tensor", "ndarray", "memmap" (a memory-mapped ndarray), "dataframe" (pandas), "hdf5",
    "arrow" (table of pyarrow), "hf" (datasets.Dataset), "lmdb", "zarr", "paths" (a
    sequence of texts that look like file names), "texts", "numbers" (a list or tuple of ints or
    floats), "list", "dict", "dataset", "callable", "text", "scalar", "none" or "other". Shapes,
    dtypes and bytes are those of arrays; `length` is of sequences and mappings; `suffix` is the
    commonest file name suffix of "paths"; `items` names the type of the first item of "list" and
    "dict".
    """

    name: Text = "unknown"
    kind: Text = "other"
    type: Text = "unknown"
    shape: tuple[Count, ...] | None = None
    dtype: Text | None = None
    nbytes: int | None = None
    device: Text | None = None
    length: int | None = None
    suffix: Text | None = None
    items: Text | None = None


class Part(Struct, frozen=True):
    """An object that takes part: a data set (with the sets it wraps as `children`), a sampler, a
    function.

    `type` is its qualified name, `name` what code would call it (the class's or the function's own
    name), `bases` the qualified names of its classes, itself first. `module_file` is the file of
    the module that defines it, `qualname` its name there: the same class has both the same,
    whatever its module was called. `getitem`, `getitems`, `iter` and `call` hold source lines,
    dedented, where the source could be read: of `__getitem__`, `__getitems__`, `__iter__`, and of
    the function itself. `names` are the global and attribute names that code uses, functions of the
    same class included. `helpers` is the source of the first of these, `globals` are long lists and
    tuples of their module among these names.
    """

    type: Text = "unknown"
    name: Text = "unknown"
    bases: tuple[str, ...] = ()
    file: Text | None = None
    line: int | None = None
    module_file: Text | None = None
    qualname: Text | None = None
    length: int | None = None
    getitem: tuple[str, ...] = ()
    getitems: tuple[str, ...] = ()
    iter: tuple[str, ...] = ()
    call: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    helpers: Annotated[tuple[tuple[str, ...], ...], Meta(max_length=64)] = ()
    attributes: Annotated[tuple[Attribute, ...], Meta(max_length=MAX_ATTRIBUTES)] = ()
    globals: Annotated[tuple[Attribute, ...], Meta(max_length=MAX_ATTRIBUTES)] = ()
    children: Annotated[tuple[Part, ...], Meta(max_length=MAX_CHILDREN)] = ()

    def is_a(self, *names: str) -> bool:
        """Whether one of its classes has this qualified name, or ends in it
        ('sampler.RandomSampler')."""
        return any(
            base == name or base.endswith("." + name) for base in self.bases for name in names
        )

    def attribute(self, name: str) -> Attribute | None:
        """The attribute of this name."""
        return next((a for a in self.attributes if a.name == name), None)


class Leaf(Struct, frozen=True):
    """One leaf of a batch. `path` is how code reaches it ("[0]", "['image']", "" for a batch that
    is one tensor)."""

    path: str = ""
    kind: Text = "other"  # "tensor", "ndarray", "text", "number" or "other"
    dtype: Text | None = None
    shape: tuple[Count, ...] | None = None
    nbytes: int | None = None
    device: Text | None = None
    pinned: bool | None = None
    # Float values that are all k/255: uint8 would hold them. None: not looked at.
    whole_255ths: bool | None = None
    padding_share: float | None = None  # of the values, trailing zeros or equal fillers
    storage_bytes: int = 0  # of the memory that the tensor is a part of


class Inspection(Struct, frozen=True):
    """The parts of one loader, None where unknown. `structure` is the batch's outermost type.
    `loop` holds the source lines of the first `for` statement over it, dedented."""

    dataset: Part | None = None
    sampler: Part | None = None
    batch_sampler: Part | None = None
    collate: Part | None = None
    worker_init: Part | None = None
    structure: Text | None = None
    loop: tuple[str, ...] = ()
    leaves: Annotated[tuple[Leaf, ...], Meta(max_length=MAX_LEAVES)] = ()

    @property
    def parts(self) -> list[Part]:
        """The data set and the sets it wraps, the outermost first; none where it was not looked
        at."""
        found = [self.dataset] if self.dataset is not None else []
        for part in found:
            found += part.children
        return found
