"""How a data set, wrapped ones included, gives a whole batch at once, as code to paste.

Each access gives exactly what `default_collate` makes of the single samples: the same structure
(a sample's tuple becomes a list), the same types, the same values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....profiler.store.inspection import Attribute, Part
from ...case.code_text import identifier
from .access import Plan, Sample, items, leaves, read_access
from .batch_values import ROWS, NotArrays, Value, look_up

_TORCH = "torch.utils.data.dataset."


@dataclass(frozen=True)
class Access:
    """A whole batch of one data set.

    `expression` is code for what takes a tensor of indices, `classes` the definitions it needs,
    `plan` how a batch is made of each data set inside.
    """

    expression: str
    classes: tuple[str, ...]
    plan: Plan

    @property
    def leaves(self) -> int:
        """How many values a sample has."""
        return len(leaves(self.plan.result))

    @property
    def lists(self) -> int:
        """Leaves that are read value by value."""
        return sum(leaf.form == "list" for leaf in leaves(self.plan.result))

    @property
    def kind(self) -> str | None:
        """The structure that comes out, if it holds tensors of the CPU and nothing else."""
        sample = self.plan.result
        if not all(isinstance(leaf, Value) and leaf.plain for leaf in items(sample) or [sample]):
            return None
        return (
            "value" if isinstance(sample, Value) else "dict" if isinstance(sample, dict) else "list"
        )


def in_subsets(part: Part) -> tuple[Part, str]:
    """The data set of which these are some samples, or the data set itself, and how code reaches
    it."""
    path = "dataset"
    while part.type == _TORCH + "Subset" and part.children:
        part, path = part.children[0], f"{path}.dataset"
    return part, path


def batch_access(part: Part, expression: str = "dataset") -> Access:
    """How this data set gives whole batches. Raises NotArrays with what stands in the way."""
    if part.type == _TORCH + "Subset" and len(part.children) == 1:
        child = batch_access(part.children[0], f"{expression}.dataset")
        chosen = f"Selected({child.expression}, {expression}.indices)"
        return replace(child, expression=chosen)
    if part.type == _TORCH + "ConcatDataset" and part.children:
        return _joined(part, expression)
    return _own(part, expression)


def _own(part: Part, expression: str) -> Access:
    held = part.attribute("tensors") if part.type == _TORCH + "TensorDataset" else None
    if held is not None and held.length:
        names = [f"tensors[{number}]" for number in range(held.length)]
        each = [Attribute(name, "tensor", shape=(1,), device=held.device) for name in names]
        plan = Plan((), tuple(look_up(tensor, ROWS, []) for tensor in each))
    else:
        plan = read_access(part.getitem, part.attributes)
    name = f"{identifier(part.name, 'MyDataset')}Batches"
    classes = (view_class(name, identifier(part.name, "data set"), plan),)
    return Access(f"{name}({expression})", classes, plan)


def _joined(part: Part, expression: str) -> Access:
    held = part.attribute("datasets")
    if held is not None and held.length not in (None, len(part.children)):
        raise NotArrays("it joins more data sets than were recorded")
    children = [batch_access(child, "part") for child in part.children]
    first = children[0]
    if first.kind is None or len({(c.kind, c.leaves) for c in children}) > 1:
        raise NotArrays("the data sets it joins differ in what a sample is")
    classes = tuple(dict.fromkeys(text for child in children for text in child.classes))
    if len({text.partition("(")[0] for text in classes}) != len(classes):
        raise NotArrays("the data sets it joins have classes of the same name")
    parts = f"{first.expression} for part in {expression}.datasets"
    if any(child.expression != first.expression for child in children):
        own = (batch_access(c, f"{expression}.datasets[{n}]") for n, c in enumerate(part.children))
        parts = ", ".join(child.expression for child in own)
    return Access(f"Joined([{parts}])", classes, first.plan)


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
