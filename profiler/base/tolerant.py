"""Reads run files into the `msgspec` types that they were written from, with tolerance.

A run directory may be torn by a crash, come from another version or machine, or be written to harm
its reader. So no file is refused as a whole. A field that is missing or does not fit its type gets
its default. A text or list that is longer than `max_length` is cut. Of a list of Structs, an item
that does not fit is left out.
"""

from __future__ import annotations

import types
import typing
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, Struct, ValidationError, convert, structs

from .errors import RunUnreadable
from .metadata import read_json

S = TypeVar("S")

Text = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]


def read_as(kind: type[S], path: Path, notes: list[str] | None = None, **bounds: int) -> S:
    """The object in a JSON file, see `fitted`. `notes`, `bounds` and the error RunUnreadable are
    those of `read_json`."""
    return fitted(read_json(path, notes, **bounds), kind)


def read_or_empty(kind: type[S], path: Path, **bounds: Any) -> S:
    """The same; one with nothing but defaults where the file cannot be read. Never raises."""
    try:
        return read_as(kind, path, **bounds)
    except RunUnreadable:
        return kind()


def fitted(data: Any, kind: type[S]) -> S:
    """The data as this kind of Struct, whose fields must all have defaults. Never raises."""
    found: S = _fit(data, kind)
    return kind() if found is UNSET else found


def _fit(value: Any, kind: Any) -> Any:
    """The value as this type, UNSET if nothing of it fits."""
    try:
        return convert(value, kind)  # nearly all values fit
    except (ValidationError, ValueError, TypeError):
        pass
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:  # longer than it may be, or a number out of bounds
        most = args[1].max_length
        return _fit(value[:most], args[0]) if most and isinstance(value, str | list) else UNSET
    if origin in (typing.Union, types.UnionType):
        return next((found for each in args if (found := _fit(value, each)) is not UNSET), UNSET)
    if _is_struct(kind):
        return _fit_struct(value, kind)
    if origin is tuple and _is_struct(args[0]) and isinstance(value, list):
        return tuple(found for each in value if (found := _fit(each, args[0])) is not UNSET)
    return UNSET


def _fit_struct(value: Any, kind: type[Struct]) -> Any:
    fields = structs.fields(kind)
    if kind.__struct_config__.array_like and isinstance(value, list):
        value = {field.encode_name: each for field, each in zip(fields, value, strict=False)}
    if not isinstance(value, dict):
        return UNSET
    found = {field.name: _fit(value.get(field.encode_name, UNSET), field.type) for field in fields}
    try:
        return kind(**{name: each for name, each in found.items() if each is not UNSET})
    except (ValueError, TypeError):  # a field is missing, or fields contradict each other
        return UNSET


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def as_json(value: Struct) -> dict[str, Any]:
    """For `json.dumps`. (msgspec's own encoder refuses texts that are not UTF-8, and writes NaN as
    null.)"""
    data: dict[str, Any] = msgspec.to_builtins(value)
    return data
