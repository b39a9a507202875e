"""Values that a sample is made of, as they are for a whole batch, and the operations on them.

Each function takes and gives a `Value`, which is code. `access` knows no other operations. What
has no exact form for batches raises NotArrays.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import Literal

from ....profiler.store.inspection import Attribute
from .source_literals import (
    PYTHON_TYPES,
    TORCH_TYPES,
    NotArrays,
    named_dtype,
    plain_dtype,
    python_type,
    whole,
)

__all__ = ["NotArrays", "Value"]

Form = Literal["tensor", "array", "list"]
ARRAY_FORMS: dict[str, Form] = {"tensor": "tensor", "ndarray": "array", "memmap": "array"}


@dataclass(frozen=True)
class Value:
    """One expression of the method, for a whole batch.

    `text` is code over `source` (the data set) and `rows` (a tensor of indices). `form` is its
    type: a tensor, a NumPy array, or a list with one value per sample. `ndim` and `dtype` are those
    of one sample. `python` marks a plain number of a sample, which is a tensor in the batch,
    `texts` a list of strings.
    """

    text: str
    form: Form
    ndim: int = 0
    dtype: str | None = None
    python: bool = False
    texts: bool = False

    def then(self, more: str) -> Value:
        """The same value with an attribute, a call or a subscript behind it."""
        return replace(self, text=f"{self.text}{more}")

    @property
    def in_order(self) -> Value:
        """The same values in the memory order of collated samples."""
        return self.then(".contiguous()" if self.form == "tensor" else ".copy()")

    @property
    def samples(self) -> str:
        """Code for the values of the single samples, in the types that the method sees."""
        if self.python:
            return f"{self.text}.tolist()"
        return f"{self.text}.unbind()" if self.form == "tensor" else self.text


# The indices of the batch.
ROWS = Value("rows", "tensor", dtype="int64")


def _text(keys: list[ast.expr]) -> str:
    return ", ".join(map(ast.unparse, keys))


def _rows(inner: Value, form: Form) -> str:
    """The rows to look up, in the type that an array of this form takes."""
    if inner.ndim or inner.form == "list" or not (inner.dtype or "").startswith(("int", "uint")):
        raise NotArrays
    if form == "tensor" and inner.form == "array":
        return f"torch.as_tensor({inner.text})"
    if form == "array" and inner.form == "tensor":
        return f"{inner.text}.numpy()"
    return f"{inner.text}.tolist()" if form == "list" else inner.text


def look_up(attribute: Attribute, inner: Value, rest: list[ast.expr]) -> Value:
    """Rows of an array: of those at `inner`, `rest` of each.

    Plain rows use the fastest call: `tensor[rows]` is slower, and starts threads from a few
    thousand values on.
    """
    form, name = ARRAY_FORMS[attribute.kind], attribute.name
    dtype, ndim = plain_dtype(attribute.dtype), len(attribute.shape or ()) - 1
    # NumPy's objects, texts and 64-bit numbers without a sign have no tensors of their own.
    if len(rest) > ndim or (form == "array" and dtype in (None, "uint64")):
        raise NotArrays
    cpu = attribute.device in (None, "cpu")
    found = Value(f"source.{name}", form, ndim - _dimensions(rest), dtype)
    rows = _rows(inner, form)
    if rest:
        return found.then(f"[{rows}, {_text(rest)}]").in_order
    if not cpu or attribute.kind == "memmap":
        return found.then(f"[{rows}]")
    return found.then(f".index_select(0, {rows})" if form == "tensor" else f".take({rows}, axis=0)")


def _dimensions(rest: list[ast.expr]) -> int:
    """How many dimensions these subscripts remove."""
    return sum(not isinstance(each, ast.Slice) for each in rest)


def from_list(attribute: Attribute, inner: Value) -> Value:
    text = f"[source.{attribute.name}[row] for row in {_rows(inner, 'list')}]"
    return Value(text, "list", texts=attribute.kind in ("texts", "paths"))


def pick_from(value: Value, rest: list[ast.expr]) -> Value:
    """`x[0]`, `x[:, 3]` of one sample's value."""
    if value.form == "list":
        return Value(f"[row[{_text(rest)}] for row in {value.text}]", "list")
    backwards = any(
        isinstance(each, ast.Slice) and each.step is not None and whole(each.step) < 1
        for each in rest
    )
    if value.python or len(rest) > value.ndim or (value.form == "tensor" and backwards):
        raise NotArrays
    left = value.ndim - _dimensions(rest)
    return replace(value.then(f"[:, {_text(rest)}]"), ndim=left).in_order


def call_each(value: Value, code: str) -> Value:
    """A call per sample, on the values of the batch."""
    return Value(f"[{code.format('row')} for row in {value.samples}]", "list")


def as_number(value: Value, name: str) -> Value:
    """int(x), float(x), bool(x): numbers, which collate to int64, float64 and bool."""
    if value.form == "list":
        return call_each(value, f"{name}({{}})")
    if value.ndim:
        raise NotArrays
    return replace(as_type(to_tensor(value, None), PYTHON_TYPES[name]), python=True)


def to_tensor(value: Value, dtype: str | None) -> Value:
    if value.form == "list":
        return call_each(value, f"torch.tensor({{}}{f', dtype=torch.{dtype}' if dtype else ''})")
    if value.form == "array":
        value = replace(value, text=f"torch.as_tensor({value.text})", form="tensor")
    elif value.python and dtype is None and value.dtype == "float64":
        dtype = "float32"  # torch.tensor(0.5) has torch's default type
    return as_type(replace(value, python=False), dtype)


def as_type(value: Value, dtype: str | None) -> Value:
    if dtype in (None, value.dtype):
        return value
    call = f'.astype("{dtype}")' if value.form == "array" else f".to(torch.{dtype})"
    return replace(value.then(call), dtype=dtype)


def converted(value: Value, module: str, dtype: str | None) -> Value:
    """`torch.tensor(x)`, `np.asarray(x)` and their like."""
    if module == "torch":
        return to_tensor(value, dtype)
    if value.form != "array":
        raise NotArrays
    return as_type(value, dtype)


def computed(value: Value, text: str) -> Value:
    """`x / 255`: this value and a number."""
    # A single number follows the rules of Python or of NumPy's scalars, a batch those of arrays.
    if value.form == "list" or value.python or (value.form == "array" and not value.ndim):
        raise NotArrays
    return replace(value, text=f"({text})", dtype=None)


def called(value: Value, name: str, arguments: list[ast.expr]) -> Value:
    """A method of one sample's value."""
    if value.form == "list" or value.python:
        raise NotArrays
    tensor = value.form == "tensor"
    match name, arguments:
        case (("clone" | "contiguous" | "detach" | "copy"), []):
            return value
        case _, [] if tensor and name in TORCH_TYPES:
            return as_type(value, TORCH_TYPES[name])
        case (("to" | "type" | "astype"), [dtype]) if tensor != (name == "astype"):
            return as_type(value, named_dtype(dtype))
        case "numpy", [] if tensor:
            return replace(value.then(".numpy()"), form="array")
        case "item", [] if not value.ndim and (kind := python_type(value.dtype)):
            return as_number(value, kind)
    raise NotArrays
