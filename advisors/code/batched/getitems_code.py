"""The batched form of a loader: complete code, to be pasted after the definition of its data
set."""

from dataclasses import dataclass
from typing import Any

from ....profiler.store.inspection import Part
from ...case.case import Case
from ...case.code_text import Source, identifier, with_imports
from ..loader_code import DROP, loader_code
from ..loader_form import form_of
from .access import Plan, items, leaves
from .batch_access import Access, batch_access, in_subsets
from .batch_values import NotArrays, Value
from .drawn import batches_code, own_collate


@dataclass(frozen=True)
class Batched:
    """The batched form: its code, and the DataLoader arguments that it changes. None with
    `__getitems__`, which gives a list of samples for the user's own collate function."""

    code: str
    access: Access
    params: dict[str, Any]


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
    code = batches_code(
        case,
        access.expression,
        access.definition,
        collate_fn=Source("as_is"),
        shuffle=DROP,
        num_workers=0,
        worker_init_fn=DROP,
    )
    return Batched(code, access, {"batch_size": None, "num_workers": 0})


def _list_of_samples(case: Case, access: Access, why: str) -> Batched:
    """`__getitems__` that gives a list of samples: the loader, and what its collate function gets,
    stay the same. `why` the data set cannot give whole batches."""
    inner, target = in_subsets(case.dataset or Part())
    if inner.type.startswith("torch."):
        raise NotArrays(why)
    name = identifier(inner.name, f"type({target})")
    code = (
        f"import torch\n\n\n{getitems_function(access.plan)}\n"
        f"{name}.__getitems__ = getitems  # or write it into the class, as its method "
        f"__getitems__\n\n{loader_code(case)}\n"
    )
    return Batched(with_imports(code), access, {})


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
