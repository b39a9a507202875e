"""Writes the batched form of one loader: complete code, to be pasted after the definition of its
data set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...case.case import Case
from ...case.code_text import Source, identifier, with_imports
from ..loader_code import DROP, loader_code
from ..loader_form import form_of
from ..template import definitions
from .access import Plan
from .batch_access import Access, batch_access
from .batch_values import NotArrays
from .drawn import asking_for_batches, drawn_batches, own_collate, whole_epochs


@dataclass(frozen=True)
class Batched:
    """The batched form: its code, the DataLoader arguments it changes, and what is left to do a
    sample.

    `form` is "sampler" (whole batches of indices) or "getitems" (a list of samples for the user's
    own collate function, which stays).
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
    drawn = drawn_batches(case)
    changes: dict[str, Any] = {"shuffle": DROP, "collate_fn": Source("as_is")}
    if not keep_workers:
        changes |= {"num_workers": 0, "worker_init_fn": DROP}
    loader = asking_for_batches(case, access.expression, drawn, **changes)
    text = "\n\n".join([*access.classes, *drawn.classes, definitions("batches", "as_is")])
    code = "\n".join(["import torch", "\n", text, "", *loader, *_loop(case, access)])
    return Batched("sampler", with_imports(code + "\n"), access, keep_workers)


def _loop(case: Case, access: Access) -> list[str]:
    """A comment with the same loop without a DataLoader."""
    if not whole_epochs(case) or access.loops:
        return []
    order = (
        "torch.randperm(len(dataset))" if form_of(case).shuffle else "torch.arange(len(dataset))"
    )
    return [
        "",
        "# Without a DataLoader it is faster still:",
        f"#     batches = {access.expression}",
        f"#     for rows in {order}.split({case.batch_size}):",
        "#         batch = batches[rows]",
    ]


def _list_of_samples(case: Case, access: Access, why: str) -> Batched:
    """`__getitems__` that answers a list of samples: the loader, and what its collate function is
    given, stay the same. `why` there are no whole batches to be had from the data set."""
    dataset = case.dataset
    assert dataset is not None
    inner, target = dataset, "dataset"
    while inner.type.endswith("data.dataset.Subset") and len(inner.children) == 1:
        inner, target = inner.children[0], f"{target}.dataset"
    if access.plan is None or access.loops:
        raise NotArrays(why)
    fallback = f"type({target})"
    name = identifier(inner.name, fallback)
    code = [
        "import torch",
        "\n",
        getitems_function(access.plan),
        "",
        f"{name}.__getitems__ = getitems  # or write it into the class, as its method __getitems__",
        "",
        loader_code(case),
    ]
    return Batched("getitems", with_imports("\n".join(code) + "\n"), access, True)


def getitems_function(plan: Plan) -> str:
    """A `__getitems__` with the samples themselves, each as `__getitem__` gives it."""
    result = plan.result
    if any(item.value is None for item in result.items):
        raise NotArrays("its samples are nested")
    lines = [
        "def getitems(source, indices):",
        '    """The samples at these indices: each array is read once for all of them."""',
        "    rows = torch.as_tensor(indices)",
        *(f"    {local} = {value.text}" for local, value in plan.assigns),
    ]
    texts = [leaf.samples for leaf in plan.leaves]
    if result.kind == "value":
        lines.append(f"    return list({texts[0]})")
    elif result.kind == "tuple":
        lines.append(f"    return list(zip({', '.join(texts)}))")
    elif result.kind == "list":
        lines.append(f"    return [list(sample) for sample in zip({', '.join(texts)})]")
    else:
        lines.append(
            f"    return [dict(zip({list(result.keys)!r}, sample)) for sample in "
            f"zip({', '.join(texts)})]"
        )
    return "\n".join(lines) + "\n"
