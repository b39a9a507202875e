"""Writes the form for a small data set that cannot be read at once: its samples made once, then
whole batches."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from ...case.case import Case
from ...case.code_text import Source, with_imports
from ...case.fetching import sample_bytes
from ...storage.files import length_of
from ..loader_code import DROP
from ..loader_form import form_of
from ..template import definitions
from .batch_values import NotArrays
from .drawn import asking_for_batches, drawn_batches, own_collate, whole_epochs

# Larger copies of a data set are for the user to decide on; and a copy should leave most of the
# memory free.
MAX_BYTES = 2_000_000_000
MEMORY_SHARE = 0.25

# A data set that uses such names may answer otherwise next time: then its samples cannot be kept.
_CHANCE = (
    "rand",
    "shuffle",
    "permutation",
    "permuted",
    "bernoulli",
    "rng",
    "augment",
    "transform",
    "noise",
    "jitter",
    "dropout",
)
_CHANCE_NAMES = frozenset(
    {"sample", "choice", "choices", "normal", "uniform", "time", "seed", "epoch", "crop", "flip"}
)


@dataclass(frozen=True)
class HeldForm:
    """The code, how many bytes the kept samples take, and how many leaves a batch has."""

    code: str
    nbytes: float
    leaves: int


def may_change(used: Iterable[str]) -> bool:
    """Whether what a data set's source uses lets its samples change from one time to the next;
    where nothing of that is known, they may."""
    names = {name.lower() for name in used}
    return (
        not names
        or bool(names & _CHANCE_NAMES)
        or any(part in name for name in names for part in _CHANCE)
    )


def structure_of(case: Case) -> str:
    """What a batch is: 'Tensor', 'list', 'dict', or the name of another class."""
    return (case.inspection.structure or "").rpartition(".")[2]


def not_flat_tensors(case: Case, structures: Container[str]) -> str | None:
    """Why the batches are not one of these structures with nothing but tensors right inside; None
    where they are."""
    structure, leaves = structure_of(case), case.inspection.leaves
    if structure not in structures or not leaves or any(leaf.kind != "tensor" for leaf in leaves):
        return "its batches are not plain tensors"
    if any(leaf.path.count("[") > (structure != "Tensor") for leaf in leaves):
        return "its batches are nested"
    return None


def decoded_bytes(case: Case) -> float | None:
    """What all samples take as they reach the batch; None where it was not measured."""
    length, a_sample = length_of(case.loader), sample_bytes(case)
    return a_sample * length if length is not None and a_sample is not None else None


def held_form(case: Case) -> HeldForm:
    """Raises NotArrays with why the samples of this data set are better not kept."""
    dataset, length = case.dataset, case.config.get("dataset_len")
    if (
        dataset is None
        or not isinstance(length, int)
        or not length
        or not whole_epochs(case)
        or own_collate(case)
    ):
        raise NotArrays("how its samples are drawn or collated is not the plain way")
    by_hand = form_of(case).by_hand
    if by_hand is not None:
        raise NotArrays(by_hand)
    if may_change(dataset.names):
        raise NotArrays("its samples may change from one epoch to the next")
    if any(a.kind in ("callable", "other") for a in dataset.attributes):
        raise NotArrays("it holds functions or objects that may change its samples")
    structure = structure_of(case)
    odd = not_flat_tensors(case, ("Tensor", "list", "dict"))
    if odd is not None:
        raise NotArrays(odd)
    nbytes = decoded_bytes(case)
    if nbytes is None:
        raise NotArrays("the size of its batches was not measured")
    free = case.system.mem_available_min_bytes
    if nbytes > min(MAX_BYTES, MEMORY_SHARE * free if free is not None else MAX_BYTES):
        raise NotArrays("its samples would take too much memory to keep")
    drawn = drawn_batches(case)
    changes = {"collate_fn": Source("as_is"), "num_workers": 0, "worker_init_fn": DROP}
    loader = asking_for_batches(case, "Held(dataset)", drawn, **changes)
    text = "\n\n".join(
        [
            definitions("batches", "Held", KIND=structure),
            *drawn.classes,
            definitions("batches", "as_is"),
        ]
    )
    code = "\n".join(["import torch", "\n", text, "", *loader])
    return HeldForm(with_imports(code + "\n"), nbytes, len(case.inspection.leaves))
