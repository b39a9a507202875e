"""How a data set, wrapped ones included, gives a whole batch at once, as code to paste.

Each access gives exactly what `default_collate` makes of the single samples: the same structure
(a sample's tuple becomes a list), the same types, the same values.
"""

from dataclasses import dataclass, replace

from ....profiler.store.inspection import Attribute, Part
from ...case.code_text import identifier
from .access import Plan, Sample, leaves, read_access
from .batch_values import ROWS, Value, look_up

_TORCH = "torch.utils.data.dataset."


@dataclass(frozen=True)
class Access:
    """A whole batch of one data set.

    `expression` is code for what takes a tensor of indices, `definition` the class it needs, `plan`
    how a batch is made.
    """

    expression: str
    definition: str
    plan: Plan

    @property
    def leaves(self) -> int:
        """How many values a sample has."""
        return len(leaves(self.plan.result))

    @property
    def lists(self) -> int:
        """Leaves that are read value by value."""
        return sum(leaf.form == "list" for leaf in leaves(self.plan.result))


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
    held = part.attribute("tensors") if part.type == _TORCH + "TensorDataset" else None
    if held is not None and held.length:
        names = [f"tensors[{number}]" for number in range(held.length)]
        each = [Attribute(name, "tensor", shape=(1,), device=held.device) for name in names]
        plan = Plan((), tuple(look_up(tensor, ROWS, []) for tensor in each))
    else:
        plan = read_access(part.getitem, part.attributes)
    name = f"{identifier(part.name, 'MyDataset')}Batches"
    definition = view_class(name, identifier(part.name, "data set"), plan)
    return Access(f"{name}({expression})", definition, plan)


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
