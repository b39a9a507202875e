"""Run files as the `msgspec` types that they are written from, read with tolerance.

A run directory may be torn by a crash, come from another version or machine, or have been written
to harm its reader. So no value is refused as a whole: a field that is missing, or does not fit its
type, has its default; an item that does not fit is left out; what is longer than its type's
`max_length` is cut. A list of numbers is whole or nothing, since each one's place has a meaning.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, Struct, ValidationError, convert, structs

from .metadata import clean, read_json

S = TypeVar("S")

Text = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]


def read_as(kind: type[S], path: Path, notes: list[str] | None = None, **bounds: int) -> S:
    """The object in a JSON file, see `fitted`. Raises RunUnreadable as `read_json`, of which
    `notes` and `bounds` are too."""
    return fitted(read_json(path, notes, **bounds), kind)


def fitted(data: Any, kind: type[S]) -> S:
    """As this kind of Struct, all of whose fields have defaults. Never raises."""
    found: S = _fit(data, kind)
    return kind() if found is UNSET else found


def _fit(value: Any, kind: Any) -> Any:
    """The value as this type, UNSET where nothing of it fits."""
    try:
        return convert(value, kind)  # what is whole, that is nearly everything, costs this alone
    except (ValidationError, ValueError, TypeError):
        pass
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _fit_bounded(value, args[0], args[1].max_length)
    if origin in (typing.Union, types.UnionType):
        return next((found for each in args if (found := _fit(value, each)) is not UNSET), UNSET)
    if isinstance(kind, type) and issubclass(kind, Struct):
        return _fit_struct(value, kind)
    if (
        origin is tuple
        and args[1:] == (...,)
        and isinstance(value, list)
        and not _is_number(args[0])
    ):
        return tuple(found for each in value if (found := _fit(each, args[0])) is not UNSET)
    if origin in (dict, Mapping) and isinstance(value, dict):
        return {
            name: found
            for name, each in value.items()
            if (found := _fit(each, args[1])) is not UNSET
        }
    return UNSET


def _fit_bounded(value: Any, kind: Any, most: int | None) -> Any:
    if most is None:  # a number out of bounds
        return UNSET
    if isinstance(value, str):
        value = clean(value, most)
    elif isinstance(value, list):
        value = value[:most]
    elif isinstance(value, dict):
        value = dict(list(value.items())[:most])
    return _fit(value, kind)


def _fit_struct(value: Any, kind: type[Struct]) -> Any:
    fields = structs.fields(kind)
    if kind.__struct_config__.array_like and isinstance(value, list):
        value = {field.encode_name: each for field, each in zip(fields, value, strict=False)}
    if not isinstance(value, dict):
        return UNSET
    found = {field.name: _fit(value.get(field.encode_name, UNSET), field.type) for field in fields}
    try:
        return kind(**{name: each for name, each in found.items() if each is not UNSET})
    except (
        ValueError,
        TypeError,
    ):  # a field without a default is missing, or fields contradict each other
        return UNSET


def _is_number(kind: Any) -> bool:
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return kind in (int, float)


def as_json(value: Struct) -> dict[str, Any]:
    """As `json.dumps` takes it. (msgspec's own encoder refuses texts that are no UTF-8, and writes
    NaN as null.)"""
    data: dict[str, Any] = msgspec.to_builtins(value)
    return data
