"""Pieces of code for a user's own pipeline, put together from what was seen of its data set and its
batches."""

from collections.abc import Iterator
from dataclasses import dataclass

from ...profiler.store.inspection import Attribute, Part
from ..case.code_text import identifier

# Kinds of attributes that are copied to a worker that is spawned, and whose pages a forked one
# copies when reading.
_COPIED = ("ndarray", "dataframe", "paths", "texts", "numbers", "list", "dict")


@dataclass(frozen=True)
class Held:
    """An attribute of a data set: the class that holds it, and the code that reaches it from
    `dataset`."""

    owner: str
    attribute: Attribute
    code: str


def heavy_attributes(dataset: Part, least_bytes: int, least_length: int) -> list[Held]:
    """The four largest attributes of a data set and of those it wraps that a process would copy:
    not tensors, which are shared, and not what is in files."""
    copied = (
        Held(identifier(part.name, "the data set"), a, f"{path}.{a.name}")
        for part, path in reached(dataset)
        for a in part.attributes
        if a.kind in _COPIED and is_name(a.name)
    )
    heavy = [
        held
        for held in copied
        if (held.attribute.nbytes or 0) >= least_bytes
        or (held.attribute.length or 0) >= least_length
    ]

    def weight(held: Held) -> int:
        # A list of n items weighs at least a pointer and a small object each.
        return max(held.attribute.nbytes or 0, 50 * (held.attribute.length or 0))

    return sorted(heavy, key=weight, reverse=True)[:4]


def reached(part: Part, path: str = "dataset") -> Iterator[tuple[Part, str]]:
    """A data set and those it wraps, each with the code that reaches it, if that is known."""
    yield part, path
    names = [a.name for a in part.attributes if a.kind in ("dataset", "hf") and is_name(a.name)]
    if part.is_a("ConcatDataset"):
        names = [f"datasets[{number}]" for number in range(len(part.children))]
    if len(names) == len(part.children):
        for name, child in zip(names, part.children, strict=True):
            yield from reached(child, f"{path}.{name}")


def is_name(text: str) -> bool:
    """Whether code may use this as the name of an attribute: names in a run are untrusted."""
    return bool(text) and identifier(text, "") == text
