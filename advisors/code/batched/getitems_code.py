"""The batched form of a loader: complete code, to be pasted after the definition of its data
set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...case.case import Case
from ...case.code_text import Source, identifier, with_imports
from ..loader_code import DROP, loader_code
from ..loader_form import form_of
from .access import Plan, items, leaves
from .batch_access import Access, batch_access
from .batch_values import NotArrays, Value
from .drawn import batches_code, own_collate, whole_epochs


@dataclass(frozen=True)
class Batched:
    """The batched form: its code, and the DataLoader arguments that it changes.

    `form` is "sampler" (whole batches of indices) or "getitems" (a list of samples for the user's
    own collate function).
    """

    form: str
    code: str
    access: Access
    workers_kept: bool

    @property
    def params(self) -> dict[str, Any]:
        workers = {} if self.workers_kept else {"num_workers": 0}
        return {"batch_size": None, **workers} if self.form == "sampler" else workers


def batched_form(case: Case) -> Batched:
    """The best batched form of this case's loader. Raises NotArrays with what stands in the way."""
    dataset = case.dataset
    if dataset is None:
        raise NotArrays("the data set was not looked at")
    access = batch_access(dataset)
    by_hand = form_of(case).by_hand
    if own_collate(case) or by_hand is not None:
        why = "its samples are collated by a function of your own" if by_hand is None else by_hand
        return _list_of_samples(case, access, why)
    return _whole_batches(case, access)


def _whole_batches(case: Case, access: Access) -> Batched:
    keep_workers = bool(access.loops) and case.num_workers > 0
    changes: dict[str, Any] = {} if keep_workers else {"num_workers": 0, "worker_init_fn": DROP}
    code = batches_code(
        case,
        access.expression,
        *access.classes,
        kind=access.kind or "",
        then=_loop(case, access),
        collate_fn=Source("as_is"),
        shuffle=DROP,
        **changes,
    )
    return Batched("sampler", code, access, keep_workers)


def _loop(case: Case, access: Access) -> str:
    """A comment with the same loop without a DataLoader."""
    if not whole_epochs(case) or access.loops:
        return ""
    order = "randperm" if form_of(case).shuffle else "arange"
    return (
        "\n# Without a DataLoader it is faster still:\n"
        f"#     batches = {access.expression}\n"
        f"#     for rows in torch.{order}(len(dataset)).split({case.batch_size}):\n"
        "#         batch = batches[rows]\n"
    )


def _list_of_samples(case: Case, access: Access, why: str) -> Batched:
    """`__getitems__` that gives a list of samples: the loader, and what its collate function gets,
    stay the same. `why` the data set cannot give whole batches."""
    inner, target = case.dataset, "dataset"
    while inner and inner.children and inner.type.endswith("data.dataset.Subset"):
        inner, target = inner.children[0], f"{target}.dataset"
    if inner is None or inner.type.startswith("torch.") or access.loops:
        raise NotArrays(why)
    name = identifier(inner.name, f"type({target})")
    code = (
        f"import torch\n\n\n{getitems_function(access.plan)}\n"
        f"{name}.__getitems__ = getitems  # or write it into the class, as its method "
        f"__getitems__\n\n{loader_code(case)}\n"
    )
    return Batched("getitems", with_imports(code), access, True)


def getitems_function(plan: Plan) -> str:
    """A `__getitems__` with the samples themselves, each as `__getitem__` gives it."""
    sample, values = plan.result, leaves(plan.result)
    if not all(isinstance(item, Value) for item in items(sample)):
        raise NotArrays("its samples are nested")
    zipped = f"zip({', '.join(value.samples for value in values)})"
    samples = f"list({values[0].samples if isinstance(sample, Value) else zipped})"
    if isinstance(sample, list):
        samples = f"[list(sample) for sample in {zipped}]"
    elif isinstance(sample, dict):
        samples = f"[dict(zip({list(sample)!r}, sample)) for sample in {zipped}]"
    return (
        "def getitems(source, indices):\n"
        '    """The samples at these indices: each array is read once for all of them."""\n'
        "    rows = torch.as_tensor(indices)\n"
        + "".join(f"    {local} = {value.text}\n" for local, value in plan.assigns)
        + f"    return {samples}\n"
    )
