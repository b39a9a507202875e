"""Values a sample is made of, as they are for a whole batch: look-ups in arrays, and what is done to them.

Each function here takes and gives a `Value`, which is code and a closure that does the same; together they are all that
`access` knows. What has no exact batch form raises NotArrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from ....profiler.inspect.inspection import Attribute

Form = Literal["tensor", "array", "list"]
Scope = dict[str, Any]


class NotArrays(Exception):
    """The method does more than look up arrays; the message says what, in the middle of a sentence."""


@dataclass(frozen=True)
class Value:
    """One expression of the method, for a whole batch.

    `text` and `run` are the same thing: code over `source` (the data set) and `rows` (a tensor of indices), and what
    that code does. `form` is what it makes: a tensor, a NumPy array, or a list with one value a sample. `ndim` is of
    one sample's value. `python` marks what is a plain number in the sample and a tensor in the batch,
    `texts` what holds texts. `cpu`: not on a device.
    """

    text: str
    run: Callable[[Scope], Any]
    form: Form
    ndim: int | None = None
    dtype: str | None = None
    python: bool = False
    texts: bool = False
    cpu: bool = True


def dimensions_taken(rest: tuple[int | slice, ...]) -> int:
    """Dimensions that these subscripts take away."""
    return sum(1 for each in rest if isinstance(each, int))


def _subscript_text(each: int | slice) -> str:
    if isinstance(each, int):
        return str(each)
    parts = ["" if part is None else str(part) for part in (each.start, each.stop)]
    return ":".join(parts) + (f":{each.step}" if each.step is not None else "")


def _rows(inner: Value | None, form: Form) -> tuple[str, Callable[[Scope], Any]]:
    """The rows to look up, as the array that is looked up wants them."""
    if inner is None:
        if form == "array":
            return "rows.numpy()", lambda scope: scope["rows"].numpy()
        if form == "list":
            return "rows.tolist()", lambda scope: scope["rows"].tolist()
        return "rows", lambda scope: scope["rows"]
    if inner.ndim != 0 or inner.form == "list" or not (inner.dtype or "").startswith(("int", "uint")):
        raise NotArrays("it looks up by what it has computed")
    run = inner.run
    if form == "list":
        return f"{inner.text}.tolist()", lambda scope: run(scope).tolist()
    if form == "array" and inner.form == "tensor":
        return f"{inner.text}.numpy()", lambda scope: run(scope).numpy()
    if form == "tensor" and inner.form == "array":
        import torch

        return f"torch.as_tensor({inner.text})", lambda scope: torch.as_tensor(run(scope))
    return inner.text, run


def look_up(
    attribute: Attribute, form: Form, inner: Value | None, rest: tuple[int | slice, ...], ndim: int, dtype: str | None
) -> Value:
    """The rows of an array. Plain rows are taken by the call that is fastest: `tensor[rows]` is slower, and sets
    several threads to work on a few thousand values already."""
    name = attribute.name
    rows_text, rows = _rows(inner, form)
    cpu = attribute.device in (None, "cpu")
    if rest or not cpu or attribute.kind == "memmap":
        text = ", ".join([rows_text, *map(_subscript_text, rest)])

        def by_index(scope: Scope) -> Any:
            at = rows(scope)
            return getattr(scope["source"], name)[(at, *rest) if rest else at]

        found = Value(f"source.{name}[{text}]", by_index, form, ndim, dtype, cpu=cpu)
        return in_order(found) if rest else found
    if form == "tensor":
        return Value(
            f"source.{name}.index_select(0, {rows_text})",
            lambda scope: getattr(scope["source"], name).index_select(0, rows(scope)),
            form,
            ndim,
            dtype,
        )
    return Value(
        f"source.{name}.take({rows_text}, axis=0)",
        lambda scope: getattr(scope["source"], name).take(rows(scope), axis=0),
        form,
        ndim,
        dtype,
    )


def in_order(value: Value) -> Value:
    """The same values in the memory order of collated samples."""
    run = value.run
    if value.form == "tensor":
        text = f"{value.text}.contiguous()"
        return replace(value, text=text, run=lambda scope: run(scope).contiguous())
    return replace(value, text=f"{value.text}.copy()", run=lambda scope: run(scope).copy())


def from_list(name: str, inner: Value | None, texts: bool) -> Value:
    rows_text, rows = _rows(inner, "list")

    def run(scope: Scope) -> Any:
        held = getattr(scope["source"], name)
        return [held[row] for row in rows(scope)]

    return Value(f"[source.{name}[row] for row in {rows_text}]", run, "list", texts=texts)


def pick_from(value: Value, rest: tuple[int | slice, ...]) -> Value:
    """`x[0]`, `x[:, 3]` on one sample's value."""
    run = value.run
    subscript = ", ".join(map(_subscript_text, rest))
    if value.form == "list":
        picked = rest if len(rest) > 1 else rest[0]
        text = f"[row[{subscript}] for row in {value.text}]"
        return Value(text, lambda scope: [v[picked] for v in run(scope)], "list")
    left = (value.ndim or 0) - dimensions_taken(rest)
    if value.ndim is None or value.python or left < 0 or len(rest) > value.ndim:
        raise NotArrays("it picks from a single number")
    if value.form == "tensor" and any(isinstance(each, slice) and (each.step or 1) < 1 for each in rest):
        raise NotArrays("it reverses a tensor")
    everything = (slice(None), *rest)
    return in_order(
        replace(value, text=f"{value.text}[:, {subscript}]", run=lambda scope: run(scope)[everything], ndim=left)
    )


def samples_of(value: Value) -> tuple[str, Callable[[Scope], Any]]:
    """The values of the single samples, in the types the method itself sees."""
    run = value.run
    if value.python:
        return f"{value.text}.tolist()", lambda scope: run(scope).tolist()
    if value.form == "tensor":
        return f"{value.text}.unbind()", lambda scope: run(scope).unbind()
    return value.text, run


def samples_text(value: Value) -> str:
    """Code for the values of the single samples, in the types the method itself gives."""
    return samples_of(value)[0]


def call_each(value: Value, code: str, function: Callable[[Scope], Callable[[Any], Any]]) -> Value:
    """A call a sample, on the values of the batch."""
    text, made = samples_of(value)

    def run(scope: Scope) -> Any:
        call = function(scope)
        return [call(row) for row in made(scope)]

    return Value(f"[{code.format('row')} for row in {text}]", run, "list")


def as_number(value: Value, name: str) -> Value:
    """int(x), float(x), bool(x): numbers, which collate to int64, float64 and bool."""
    if value.form == "list":
        function = {"int": int, "float": float, "bool": bool}[name]
        return call_each(value, f"{name}({{}})", lambda scope: function)
    if value.ndim != 0:
        raise NotArrays(f"it calls {name} on more than a number")
    dtype = {"int": "int64", "float": "float64", "bool": "bool"}[name]
    return replace(as_type(to_tensor(value, None), dtype), python=True)


def to_tensor(value: Value, dtype: str | None) -> Value:
    import torch

    run = value.run
    if value.form == "list":
        if dtype is None:
            return call_each(value, "torch.tensor({})", lambda scope: torch.tensor)
        as_dtype = getattr(torch, dtype)
        return call_each(
            value, f"torch.tensor({{}}, dtype=torch.{dtype})", lambda scope: lambda v: torch.tensor(v, dtype=as_dtype)
        )
    if value.form == "array":
        value = replace(value, text=f"torch.as_tensor({value.text})", run=lambda scope: torch.as_tensor(run(scope)),
                        form="tensor")  # fmt: skip
    elif value.python and dtype is None and value.dtype == "float64":
        dtype = "float32"  # torch.tensor(0.5) has torch's default type
    return as_type(replace(value, python=False), dtype) if dtype else replace(value, python=False)


def as_type(value: Value, dtype: str) -> Value:
    import torch

    run = value.run
    if value.dtype == dtype:
        return value
    if value.form == "array":
        return replace(
            value, text=f'{value.text}.astype("{dtype}")', run=lambda scope: run(scope).astype(dtype), dtype=dtype
        )
    target = getattr(torch, dtype)
    return replace(value, text=f"{value.text}.to(torch.{dtype})", run=lambda scope: run(scope).to(target), dtype=dtype)


def reshaped(value: Value, shape: tuple[int, ...]) -> Value:
    run = value.run
    told = ", ".join(map(str, shape))
    return replace(
        value,
        text=f"{value.text}.reshape(len(rows), {told})",
        run=lambda scope: run(scope).reshape(len(scope["rows"]), *shape),
        ndim=len(shape),
    )


def permuted(value: Value, order: tuple[int, ...]) -> Value:
    """Collated samples lie in memory in their own order, so the batch is copied into it too."""
    run = value.run
    told = ", ".join(map(str, order))
    name = "permute" if value.form == "tensor" else "transpose"
    return in_order(
        replace(value, text=f"{value.text}.{name}({told})", run=lambda scope: getattr(run(scope), name)(*order))
    )


def unsqueezed(value: Value, dimension: int) -> Value:
    """A tensor with one more dimension, counted as the sample's own are."""
    run = value.run
    at = dimension + 1 if dimension >= 0 else dimension
    return replace(
        value,
        text=f"{value.text}.unsqueeze({at})",
        run=lambda scope: run(scope).unsqueeze(at),
        ndim=(value.ndim or 0) + 1,
    )
