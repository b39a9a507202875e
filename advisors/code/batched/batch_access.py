"""How a data set, wrapped ones included, hands out a whole batch at once, as code to paste.

Each access answers exactly what `default_collate` makes of the single samples: the same structure
(a sample's tuple becomes a list), the same types, the same values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ....profiler.store.inspection import Part
from ...case.code_text import identifier, with_imports
from ..template import definitions
from .access import Plan, Structure, read_access
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
        return sum(leaf.form == "list" for leaf in self.plan.leaves) if self.plan is not None else 0

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
        return _subset(batch_access(part.children[0], f"{expression}.dataset"), expression)
    if part.type == _TORCH + "ConcatDataset" and part.children:
        return _joined(part, expression)
    return _own(part, expression)


def _own(part: Part, expression: str) -> Access:
    plan = read_access(part.getitem, part.attributes)
    leaves = plan.leaves
    flat = all(item.value is not None for item in plan.result.items)
    name = f"{identifier(part.name, 'MyDataset')}Batches"
    kind = plan.result.kind
    return Access(
        expression=f"{name}({expression})",
        classes=(view_class(name, identifier(part.name, "data set"), plan),),
        kind="list" if kind == "tuple" else kind,
        leaves=len(leaves),
        plain=flat and all(leaf.form != "list" and leaf.cpu for leaf in leaves),
        loops=plan.transforms,
        plan=plan,
    )


def _subset(child: Access, expression: str) -> Access:
    return Access(
        expression=f"Selected({child.expression}, {expression}.indices)",
        classes=(*child.classes, definitions("batches", "Selected")),
        kind=child.kind,
        leaves=child.leaves,
        plain=child.plain,
        loops=child.loops,
        plan=child.plan,
    )


def _joined(part: Part, expression: str) -> Access:
    held = part.attribute("datasets")
    if held is not None and held.length is not None and held.length != len(part.children):
        raise NotArrays("it joins more data sets than were recorded")
    children = [
        batch_access(child, f"{expression}.datasets[{at}]")
        for at, child in enumerate(part.children)
    ]
    first = children[0]
    if any((c.kind, c.leaves, c.plain) != (first.kind, first.leaves, True) for c in children):
        raise NotArrays("the data sets it joins differ in what a sample is")
    classes = tuple(dict.fromkeys(text for child in children for text in child.classes))
    named = {text.partition("(")[0] for text in classes}
    if len(named) != len(classes):
        raise NotArrays("the data sets it joins have classes of the same name")
    one = batch_access(part.children[0], "part").expression
    alike = all(batch_access(child, "part").expression == one for child in part.children)
    parts = (
        f"[{one} for part in {expression}.datasets]"
        if alike
        else "[" + ", ".join(c.expression for c in children) + "]"
    )
    return Access(
        expression=f"Joined({parts})",
        classes=(*classes, definitions("batches", "Joined", KIND=first.kind)),
        kind=first.kind,
        leaves=first.leaves,
        loops=tuple(dict.fromkeys(name for child in children for name in child.loops)),
    )


def view_class(name: str, of: str, plan: Plan) -> str:
    """The class that reads a data set of the class `of` a whole batch at a time."""
    lines = [
        f"class {name}(Dataset):",
        f'    """A {of} that gives a whole batch at once: each array is read once."""',
        "",
        "    def __init__(self, source):",
        "        self.source = source",
        "",
        "    def __len__(self):",
        "        return len(self.source)",
        "",
        "    def __getitem__(self, indices):",
        "        source, rows = self.source, torch.as_tensor(indices)",
        *(f"        {local} = {value.text}" for local, value in plan.assigns),
        f"        return {structure_text(plan.result)}",
    ]
    return "\n".join(lines) + "\n"


def structure_text(structure: Structure, in_sequence: bool = False) -> str:
    """Code for the collated batch."""
    if structure.value is not None:
        return _collated_text(structure.value, in_sequence)
    if structure.kind == "dict":
        pairs = zip(structure.keys, structure.items, strict=True)
        return "{" + ", ".join(f"{key!r}: {structure_text(item)}" for key, item in pairs) + "}"
    return "[" + ", ".join(structure_text(item, True) for item in structure.items) + "]"


def _collated_text(value: Value, in_sequence: bool) -> str:
    if value.form == "tensor":
        return value.text
    if value.form == "array":
        return f"torch.as_tensor({value.text})"
    # default_collate hands texts on as they come: a tuple of them inside of tuples, else a list.
    as_given = f"tuple({value.text})" if in_sequence else value.text
    return as_given if value.texts else f"default_collate({as_given})"
