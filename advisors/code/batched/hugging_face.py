"""Data sets of the `datasets` library: they know batches, but a DataLoader asks them for rows."""

from ...case.case import Case
from ..loader_form import drawing_sampler, form_of
from .drawn import batches_code, whole_epochs

_CLASS = "datasets.arrow_dataset.Dataset"  # as `datasets` names it


def is_hugging_face(case: Case) -> bool:
    """Whether the loader's data set is a `datasets.Dataset` itself."""
    return case.dataset is not None and case.dataset.is_a(_CLASS)


def hugging_face_code(case: Case) -> str:
    """The loader over the same data set that asks for columns of whole batches, as tensors; as a
    comment where these are not what its batches hold now."""
    plain = form_of(case).batching == "batch_size" and whole_epochs(case)
    sampler = drawing_sampler(case) if plain else None
    code = batches_code(case, 'dataset.with_format("torch")', sampler=sampler)
    lists = any(
        leaf.dtype == "float64" or (leaf.kind != "text" and leaf.path.count("[") > 1)
        for leaf in case.inspection.leaves
    )
    if not lists:
        return code
    lines = "".join(f"#     {line}\n" for line in code.splitlines() if line)
    return f"# By hand: each column is then one tensor (float32), no list of tensors\n{lines}"
