"""The batches a loader draws, as code, for a data set that is asked for whole batches."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ....profiler.base.arrays import Rows
from ....profiler.store.run.run import LoaderRun
from ...case.case import Case
from ...case.code_text import Source, identifier, with_imports
from ..loader_code import DROP, loader_code
from ..loader_form import config_text, form_of, is_default_collate
from ..template import code_from


def batches_code(
    case: Case,
    dataset: str,
    definition: str = "",
    sampler: str | None = None,
    **changes: Any,
) -> str:
    """The loader that gives `dataset` the indices of whole batches, as it draws them today.

    `definition` is a class that `dataset` needs besides those of the template. With `sampler`,
    BatchSampler makes batches of what it draws.
    """
    form, size = form_of(case), case.batch_size or 1
    last = case.config.get("drop_last") is True
    notes: list[str] = []
    if form.batching == "batch_sampler":
        drawn = "batch_sampler"
        notes = ["# `batch_sampler` is the one this loader has today."]
    elif whole_epochs(case) and sampler is None:
        more = ", shuffle=True" if form.shuffle else ""
        more += ", drop_last=True" if last else ""
        more += form.generator
        drawn = f"BatchIndices(len(dataset), batch_size={size}{more})"
    else:
        drawn = f"BatchSampler({sampler or 'sampler'}, batch_size={size}, drop_last={last})"
        if sampler is None:
            name = identifier(config_text(case, "sampler"), "its own")
            notes = [f"# `sampler` is the one this loader has today ({name})."]
    changes |= {"batch_size": None, "batch_sampler": DROP, "drop_last": DROP}
    call = loader_code(case, dataset=Source(dataset), sampler=Source(drawn), **changes)
    text = "\n".join([*([definition, ""] if definition else []), *notes, call, ""])
    return with_imports(code_from("batches", then=text))


def own_collate(case: Case) -> bool:
    """Whether the loader's collate function is not torch's default."""
    return not is_default_collate(config_text(case, "collate_fn"))


def whole_epochs(case: Case) -> bool:
    """Whether the sampler draws each sample once: shuffled or in order."""
    if case.config.get("sampler") is None or case.batch_size is None or not form_of(case).whole:
        return False
    length, drawn = case.dataset_len, samples_an_epoch(case)
    if drawn is None or length is None:
        return True
    left_out = length % case.batch_size if case.config.get("drop_last") else 0
    return drawn == length - left_out


def samples_an_epoch(case: Case) -> int | None:
    """Samples of an epoch that ran to its end and is kept in detail; None without one."""
    drawn = (case.loader.batches["samples"][rows] for rows in kept_epochs(case.loader))
    return next((int(samples.sum()) for samples in drawn if samples.min() >= 0), None)


def kept_epochs(loader: LoaderRun) -> Iterator[Rows]:
    """The rows of the batches of each epoch that ran to its end and is kept in detail."""
    epochs, batches = loader.epochs, loader.batches
    for epoch, count, how in zip(epochs["epoch"], epochs["batches"], epochs["how"], strict=True):
        rows = np.flatnonzero(batches["epoch"] == epoch)
        if how == 1 and len(rows) == count > 0:
            yield rows
