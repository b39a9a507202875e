"""Data sets of the `datasets` library: they know batches already, but a DataLoader asks them for rows."""

from __future__ import annotations

from ..case import Case
from ..loader_code import DROP, Source, loader_code
from .getitems_code import whole_epochs

# The class and the one it derives from, as `datasets` names them.
_CLASSES = ("datasets.arrow_dataset.Dataset",)


def is_hugging_face(case: Case) -> bool:
    """Whether the loader's data set is a `datasets.Dataset` itself."""
    return case.dataset is not None and case.dataset.is_a(*_CLASSES)


def hugging_face_code(case: Case) -> str:
    """The loader over the same data set that asks for columns of whole batches, as tensors."""
    kept = bool(case.config.get("drop_last"))
    lines = ["from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler", "\n"]
    if whole_epochs(case):
        kind = "Random" if str(case.config.get("sampler")).endswith("RandomSampler") else "Sequential"
        sampler = f"{kind}Sampler(dataset)"
    else:
        sampler = "sampler"
        lines.append("# `sampler` is the one this loader has today.")
    batches = f"BatchSampler({sampler}, batch_size={case.batch_size or 1}, drop_last={kept})"
    call = loader_code(
        case,
        dataset=Source('dataset.with_format("torch")'),
        batch_size=None,
        batch_sampler=DROP,
        sampler=Source("BATCHES"),
        drop_last=DROP,
    )
    return "\n".join([*lines, call.replace("BATCHES", batches)]) + "\n"
