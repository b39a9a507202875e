"""Values a sample is made of, as they are for a whole batch: look-ups in arrays, and what is done
to them.

Each function here takes and gives a `Value`, which is code; together they are all that `access`
knows. What has no exact batch form raises NotArrays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from ....profiler.store.inspection import Attribute

Form = Literal["tensor", "array", "list"]


class NotArrays(Exception):
    """The method does more than look up arrays; the message says what, in the middle of a
    sentence."""


@dataclass(frozen=True)
class Value:
    """One expression of the method, for a whole batch.

    `text` is code over `source` (the data set) and `rows` (a tensor of indices). `form` is what it
    makes: a tensor, a NumPy array, or a list with one value a sample. `ndim` is of one sample's
    value. `python` marks what is a plain number in the sample and a tensor in the batch, `texts`
    what holds texts. `cpu`: not on a device.
    """

    text: str
    form: Form
    ndim: int | None = None
    dtype: str | None = None
    python: bool = False
    texts: bool = False
    cpu: bool = True

    def then(self, more: str) -> Value:
        """The same with something done to it: an attribute, a call, a subscript."""
        return replace(self, text=f"{self.text}{more}")


def dimensions_taken(rest: tuple[int | slice, ...]) -> int:
    """Dimensions that these subscripts take away."""
    return sum(1 for each in rest if isinstance(each, int))


def _subscript_text(each: int | slice) -> str:
    if isinstance(each, int):
        return str(each)
    parts = ["" if part is None else str(part) for part in (each.start, each.stop)]
    return ":".join(parts) + (f":{each.step}" if each.step is not None else "")


def _rows(inner: Value | None, form: Form) -> str:
    """The rows to look up, as the array that is looked up wants them."""
    if inner is None:
        return {"array": "rows.numpy()", "list": "rows.tolist()", "tensor": "rows"}[form]
    if (
        inner.ndim != 0
        or inner.form == "list"
        or not (inner.dtype or "").startswith(("int", "uint"))
    ):
        raise NotArrays("it looks up by what it has computed")
    if form == "list":
        return f"{inner.text}.tolist()"
    if form == "array" and inner.form == "tensor":
        return f"{inner.text}.numpy()"
    return (
        f"torch.as_tensor({inner.text})"
        if form == "tensor" and inner.form == "array"
        else inner.text
    )


def look_up(
    attribute: Attribute,
    form: Form,
    inner: Value | None,
    rest: tuple[int | slice, ...],
    ndim: int,
    dtype: str | None,
) -> Value:
    """The rows of an array. Plain rows are taken by the call that is fastest: `tensor[rows]` is
    slower, and sets several threads to work on a few thousand values already."""
    rows = _rows(inner, form)
    found = Value(
        f"source.{attribute.name}", form, ndim, dtype, cpu=attribute.device in (None, "cpu")
    )
    if rest or not found.cpu or attribute.kind == "memmap":
        found = found.then(f"[{', '.join([rows, *map(_subscript_text, rest)])}]")
        return in_order(found) if rest else found
    return found.then(f".index_select(0, {rows})" if form == "tensor" else f".take({rows}, axis=0)")


def in_order(value: Value) -> Value:
    """The same values in the memory order of collated samples."""
    return value.then(".contiguous()" if value.form == "tensor" else ".copy()")


def from_list(name: str, inner: Value | None, texts: bool) -> Value:
    return Value(f"[source.{name}[row] for row in {_rows(inner, 'list')}]", "list", texts=texts)


def pick_from(value: Value, rest: tuple[int | slice, ...]) -> Value:
    """`x[0]`, `x[:, 3]` on one sample's value."""
    subscript = ", ".join(map(_subscript_text, rest))
    if value.form == "list":
        return Value(f"[row[{subscript}] for row in {value.text}]", "list")
    left = (value.ndim or 0) - dimensions_taken(rest)
    if value.ndim is None or value.python or left < 0 or len(rest) > value.ndim:
        raise NotArrays("it picks from a single number")
    if value.form == "tensor" and any(
        isinstance(each, slice) and (each.step or 1) < 1 for each in rest
    ):
        raise NotArrays("it reverses a tensor")
    return in_order(replace(value.then(f"[:, {subscript}]"), ndim=left))


def samples_text(value: Value) -> str:
    """Code for the values of the single samples, in the types the method itself sees."""
    if value.python:
        return f"{value.text}.tolist()"
    return f"{value.text}.unbind()" if value.form == "tensor" else value.text


def call_each(value: Value, code: str) -> Value:
    """A call a sample, on the values of the batch."""
    return Value(f"[{code.format('row')} for row in {samples_text(value)}]", "list")


def as_number(value: Value, name: str) -> Value:
    """int(x), float(x), bool(x): numbers, which collate to int64, float64 and bool."""
    if value.form == "list":
        return call_each(value, f"{name}({{}})")
    if value.ndim != 0:
        raise NotArrays(f"it calls {name} on more than a number")
    dtype = {"int": "int64", "float": "float64", "bool": "bool"}[name]
    return replace(as_type(to_tensor(value, None), dtype), python=True)


def to_tensor(value: Value, dtype: str | None) -> Value:
    if value.form == "list":
        return call_each(
            value,
            "torch.tensor({})" if dtype is None else f"torch.tensor({{}}, dtype=torch.{dtype})",
        )
    if value.form == "array":
        value = replace(value, text=f"torch.as_tensor({value.text})", form="tensor")
    elif value.python and dtype is None and value.dtype == "float64":
        dtype = "float32"  # torch.tensor(0.5) has torch's default type
    value = replace(value, python=False)
    return as_type(value, dtype) if dtype else value


def as_type(value: Value, dtype: str) -> Value:
    if value.dtype == dtype:
        return value
    return replace(
        value.then(f'.astype("{dtype}")' if value.form == "array" else f".to(torch.{dtype})"),
        dtype=dtype,
    )


def reshaped(value: Value, shape: tuple[int, ...]) -> Value:
    return replace(
        value.then(f".reshape(len(rows), {', '.join(map(str, shape))})"), ndim=len(shape)
    )


def permuted(value: Value, order: tuple[int, ...]) -> Value:
    """Collated samples lie in memory in their own order, so the batch is copied into it too."""
    name = "permute" if value.form == "tensor" else "transpose"
    return in_order(value.then(f".{name}({', '.join(map(str, order))})"))


def unsqueezed(value: Value, dimension: int) -> Value:
    """A tensor with one more dimension, counted as the sample's own are."""
    at = dimension + 1 if dimension >= 0 else dimension
    return replace(value.then(f".unsqueeze({at})"), ndim=(value.ndim or 0) + 1)
