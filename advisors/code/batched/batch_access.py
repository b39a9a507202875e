"""How a data set, wrapped ones included, gives a whole batch at once, as code to paste.

Each access gives exactly what `default_collate` makes of the single samples: the same structure
(a sample's tuple becomes a list), the same types, the same values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from ....profiler.store.inspection import Part
from ...case.code_text import identifier, with_imports
from ..template import definitions
from .access import Plan, Sample, items, leaves, read_access
from .batch_values import NotArrays, Value

_TORCH = "torch.utils.data.dataset."


@dataclass(frozen=True)
class Access:
    """A whole batch of one data set.

    `expression` is code for what takes a tensor of indices, `classes` the definitions it needs.
    `kind` is the structure that comes out. `leaves` counts tensors, `loops` names transforms that
    are still called a sample, `plain` is False where some leaf is no tensor, or not on the CPU.
    """

    expression: str
    classes: tuple[str, ...]
    kind: Literal["value", "list", "dict"]
    leaves: int
    plain: bool = True
    loops: tuple[str, ...] = ()
    plan: Plan | None = None

    @property
    def lists(self) -> int:
        """Leaves that are read value by value."""
        return sum(leaf.form == "list" for leaf in leaves(self.plan.result)) if self.plan else 0

    def batches(self, dataset: Any) -> Any:
        """What the code makes of this data set, which must be the one that was looked at: its code
        is run."""
        names: dict[str, Any] = {"dataset": dataset}
        exec(with_imports("\n\n".join(["import torch\n", *self.classes])), names)
        return eval(self.expression, names)


def batch_access(part: Part, expression: str = "dataset") -> Access:
    """How this data set gives whole batches. Raises NotArrays with what stands in the way."""
    if part.type == _TORCH + "TensorDataset":
        held = part.attribute("tensors")
        leaves = held.length if held is not None and held.length else 2
        cpu = held is None or held.device in (None, "cpu")
        classes = (definitions("batches", "TensorBatches", ON_CPU=cpu),)
        return Access(f"TensorBatches({expression})", classes, "list", leaves, plain=cpu)
    if part.type == _TORCH + "Subset" and len(part.children) == 1:
        child = batch_access(part.children[0], f"{expression}.dataset")
        chosen = f"Selected({child.expression}, {expression}.indices)"
        needed = (*child.classes, definitions("batches", "Selected"))
        return replace(child, expression=chosen, classes=needed)
    if part.type == _TORCH + "ConcatDataset" and part.children:
        return _joined(part, expression)
    return _own(part, expression)


def _own(part: Part, expression: str) -> Access:
    plan = read_access(part.getitem, part.attributes)
    sample, values = plan.result, leaves(plan.result)
    name = f"{identifier(part.name, 'MyDataset')}Batches"
    return Access(
        expression=f"{name}({expression})",
        classes=(view_class(name, identifier(part.name, "data set"), plan),),
        kind="value" if sample in values else "dict" if isinstance(sample, dict) else "list",
        leaves=len(values),
        plain=all(
            isinstance(item, Value) and item.form != "list" and item.cpu
            for item in items(sample) or values
        ),
        loops=plan.transforms,
        plan=plan,
    )


def _joined(part: Part, expression: str) -> Access:
    held = part.attribute("datasets")
    if held is not None and held.length not in (None, len(part.children)):
        raise NotArrays("it joins more data sets than were recorded")
    children = [batch_access(child, "part") for child in part.children]
    first = children[0]
    if any((c.kind, c.leaves, c.plain) != (first.kind, first.leaves, True) for c in children):
        raise NotArrays("the data sets it joins differ in what a sample is")
    classes = tuple(dict.fromkeys(text for child in children for text in child.classes))
    if len({text.partition("(")[0] for text in classes}) != len(classes):
        raise NotArrays("the data sets it joins have classes of the same name")
    parts = f"{first.expression} for part in {expression}.datasets"
    if any(child.expression != first.expression for child in children):
        each = (batch_access(c, f"{expression}.datasets[{n}]") for n, c in enumerate(part.children))
        parts = ", ".join(child.expression for child in each)
    return Access(
        expression=f"Joined([{parts}])",
        classes=(*classes, definitions("batches", "Joined", KIND=first.kind)),
        kind=first.kind,
        leaves=first.leaves,
        loops=tuple(dict.fromkeys(name for child in children for name in child.loops)),
    )


def view_class(name: str, of: str, plan: Plan) -> str:
    """The class that reads a data set of the class `of` a whole batch at a time."""
    assigns = "".join(f"        {local} = {value.text}\n" for local, value in plan.assigns)
    return f'''\
class {name}(Dataset):
    """A {of} that gives a whole batch at once: each array is read once."""

    def __init__(self, source):
        self.source = source

    def __len__(self):
        return len(self.source)

    def __getitem__(self, indices):
        source, rows = self.source, torch.as_tensor(indices)
{assigns}        return {structure_text(plan.result)}
'''


def structure_text(sample: Sample, in_sequence: bool = False) -> str:
    """Code for the collated batch."""
    if isinstance(sample, dict):
        pairs = (f"{key!r}: {structure_text(item)}" for key, item in sample.items())
        return f"{{{', '.join(pairs)}}}"
    if not isinstance(sample, Value):
        return f"[{', '.join(structure_text(item, True) for item in sample)}]"
    if sample.form != "list":
        return sample.text if sample.form == "tensor" else f"torch.as_tensor({sample.text})"
    # default_collate gives texts as they are: a tuple of them inside of tuples, else a list.
    as_given = f"tuple({sample.text})" if in_sequence else sample.text
    return as_given if sample.texts else f"default_collate({as_given})"
