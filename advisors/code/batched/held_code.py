"""The form for a small data set that cannot be read at once: samples made once, then whole
batches."""

from __future__ import annotations

import ast
import re
from collections.abc import Container

from ....profiler.store.inspection import Part
from ...case.case import Case
from ...case.code_text import Source, parsed
from ...case.fetching import sample_bytes
from ..loader_code import DROP
from ..loader_form import form_of
from ..method import calls_in
from .batch_values import NotArrays
from .drawn import batches_code, own_collate, whole_epochs

# Larger copies of a data set are for the user to decide on; and a copy should leave most of the
# memory free.
MAX_BYTES = 2_000_000_000
MEMORY_SHARE = 0.25

# A data set that uses such names may give other samples next time.
_CHANCE = re.compile(
    ".*(rand|shuffle|permutation|permuted|bernoulli|rng|augment|transform|noise|jitter|dropout).*"
    "|sample|choices?|normal|uniform|time|seed|epoch|crop|flip",
    re.IGNORECASE,
)
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


def structure_of(case: Case) -> str:
    """What a batch is: 'Tensor', 'list', 'dict', or the name of another class."""
    return (case.inspection.structure or "").rpartition(".")[2]


def not_keepable(case: Case, structures: Container[str]) -> str | None:
    """Why the samples may change, or are not one of these structures of tensors; None if they can
    be kept."""
    dataset, structure, leaves = case.dataset, structure_of(case), case.inspection.leaves
    if dataset is None or own_collate(case):
        return "its samples are collated by a function of its own"
    if not dataset.names or any(map(_CHANCE.fullmatch, dataset.names)):
        return "its samples may change from one epoch to the next"
    if _calls_what_it_holds(dataset) or any(
        a.kind == "callable" or (a.kind == "other" and not a.type.startswith(_READERS))
        for a in dataset.attributes
    ):
        return "it holds functions or objects that may change its samples"
    if structure not in structures or not leaves or any(leaf.kind != "tensor" for leaf in leaves):
        return "its batches are not plain tensors"
    if any(leaf.path.count("[") > (structure != "Tensor") for leaf in leaves):
        return "its batches are nested"
    return "the size of its batches was not measured" if sample_bytes(case) is None else None


def _calls_what_it_holds(dataset: Part) -> bool:
    """Whether its methods call what they take out of a collection, as in `for change in
    self.changes: image = change(image)`."""
    for tree in filter(None, map(parsed, (dataset.getitem, *dataset.helpers))):
        names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
        bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        for call in calls_in(tree):
            if isinstance(call.func, ast.Subscript) or getattr(call.func, "id", None) in bound:
                return True
    return False


def held_form(case: Case) -> tuple[str, float]:
    """The code, and how many bytes the kept samples take. Raises NotArrays with the reason if the
    samples of this data set should not be kept."""
    if not case.dataset_len or not whole_epochs(case):
        raise NotArrays("its samples are not drawn in whole epochs")
    why = form_of(case).by_hand or not_keepable(case, ("Tensor", "list", "dict"))
    if why is not None:
        raise NotArrays(why)
    nbytes = (sample_bytes(case) or 0.0) * case.dataset_len
    free = case.system.mem_available_min_bytes
    if nbytes > MAX_BYTES or (free is not None and nbytes > MEMORY_SHARE * free):
        raise NotArrays("its samples would take too much memory to keep")
    code = batches_code(
        case,
        "Held(dataset)",
        kind=structure_of(case),
        collate_fn=Source("as_is"),
        num_workers=0,
        worker_init_fn=DROP,
    )
    return code, nbytes
