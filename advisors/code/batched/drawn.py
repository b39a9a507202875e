"""The batches a loader draws, as code: for a data set that is asked for each of them at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...case.case import Case
from ...case.code_text import Source, identifier
from ..loader_code import DROP, loader_code
from ..loader_form import form_of, is_default_collate
from ..template import definitions


@dataclass(frozen=True)
class Drawn:
    """What draws the batches: an expression for `sampler=` beside `batch_size=None`, the class it
    needs, and a line that says what in it is the user's."""

    expression: str
    classes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def asking_for_batches(case: Case, dataset: str, drawn: Drawn, **changes: Any) -> list[str]:
    """Code of the loader that hands `dataset` the indices of whole batches, as they are drawn."""
    call = loader_code(
        case,
        dataset=Source(dataset),
        batch_size=None,
        batch_sampler=DROP,
        sampler=Source(drawn.expression),
        drop_last=DROP,
        **changes,
    )
    return [*drawn.notes, call]


def drawn_batches(case: Case) -> Drawn:
    """The batches this loader draws, in the same order for the same seed."""
    form, last = form_of(case), case.config.get("drop_last") is True
    if form.batching == "batch_sampler":
        return Drawn(
            "batch_sampler", notes=("# `batch_sampler` is the one this loader has today.",)
        )
    if whole_epochs(case):
        more = ", shuffle=True" if form.shuffle else ""
        more += ", drop_last=True" if last else ""
        more += (
            ", generator=generator" if form.shuffle and case.config.get("generator") is True else ""
        )
        return Drawn(
            f"BatchIndices(len(dataset), batch_size={case.batch_size}{more})",
            (definitions("batches", "BatchIndices"),),
        )
    told = case.config.get("sampler")
    name = identifier(told if isinstance(told, str) else None, "its own")
    note = f"# `sampler` is the one this loader has today ({name})."
    return Drawn(
        f"BatchSampler(sampler, batch_size={case.batch_size or 1}, drop_last={last})", notes=(note,)
    )


def own_collate(case: Case) -> bool:
    """Whether the loader's collate function is not torch's default."""
    told = case.config.get("collate_fn")
    return isinstance(told, str) and not is_default_collate(told)


def whole_epochs(case: Case) -> bool:
    """Whether the sampler draws each sample once: shuffled or in order. Anything else keeps the
    sampler it has."""
    if case.config.get("sampler") is None or case.batch_size is None or not form_of(case).whole:
        return False
    length, drawn = case.config.get("dataset_len"), samples_an_epoch(case)
    if drawn is None or not isinstance(length, int):
        return True
    left_out = length % case.batch_size if case.config.get("drop_last") else 0
    return drawn == length - left_out


def samples_an_epoch(case: Case) -> int | None:
    """Samples of an epoch that ran to its end and is kept in detail; None without one."""
    epochs, batches = case.loader.epochs, case.loader.batches
    for epoch, count, how in zip(epochs["epoch"], epochs["batches"], epochs["how"], strict=True):
        rows = batches["samples"][batches["epoch"] == epoch]
        if how == 1 and len(rows) == count and len(rows) and rows.min() >= 0:
            return int(rows.sum())
    return None
