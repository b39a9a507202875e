"""Data sets of the `datasets` library: they know batches already, but a DataLoader asks them for
rows."""

from __future__ import annotations

from ...case.case import Case
from ...case.code_text import with_imports
from ..loader_form import form_of
from .drawn import Drawn, asking_for_batches, drawn_batches, whole_epochs

# The class and the one it derives from, as `datasets` names them.
_CLASSES = ("datasets.arrow_dataset.Dataset",)


def is_hugging_face(case: Case) -> bool:
    """Whether the loader's data set is a `datasets.Dataset` itself."""
    return case.dataset is not None and case.dataset.is_a(*_CLASSES)


def hugging_face_code(case: Case) -> str:
    """The loader over the same data set that asks for columns of whole batches, as tensors."""
    form = form_of(case)
    drawn = drawn_batches(case)
    if form.whole and form.batching == "batch_size" and whole_epochs(case):
        given = (
            ", generator=generator" if form.shuffle and case.config.get("generator") is True else ""
        )
        sampler = f"RandomSampler(dataset{given})" if form.shuffle else "SequentialSampler(dataset)"
        last = case.config.get("drop_last") is True
        drawn = Drawn(
            f"BatchSampler({sampler}, batch_size={case.batch_size or 1}, drop_last={last})"
        )
    return with_imports(
        "\n".join(asking_for_batches(case, 'dataset.with_format("torch")', drawn)) + "\n"
    )
