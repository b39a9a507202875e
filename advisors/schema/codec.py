"""Frozen dataclasses to JSON and back, checked against their type hints. A round trip is exact."""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Hashable, Mapping
from functools import cache
from typing import Any, TypeVar

from ...profiler.base.errors import UsageError

T = TypeVar("T")

_MISSING = object()


def dump(value: Any, indent: int | None) -> str:
    """JSON text of a dataclass. NaN and infinity have no place in it: such a figure must be None."""
    return json.dumps(dataclasses.asdict(value), indent=indent, allow_nan=False, ensure_ascii=False)


def load(cls: type[T], text: str, schema: int) -> T:
    """The `cls` in a JSON text. Keys it does not know are ignored. Raises UsageError."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError, TypeError) as error:
        raise UsageError("this is not a Loaderscope report: it is not JSON") from error
    version = data.get("schema") if isinstance(data, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise UsageError("this is not a Loaderscope report: it names no schema")
    if version > schema:
        raise UsageError(f"this report has schema {version}, written by a newer Loaderscope: upgrade to read it")
    if version != schema:
        raise UsageError(f"this report has the unknown schema {version}")
    try:
        return typing.cast("T", _decode(cls, data, "report"))
    except (_Mismatch, OverflowError) as error:
        raise UsageError(f"this is not a Loaderscope report: {error}") from error


class _Mismatch(Exception):
    """A value is not what its type hint says."""


@cache
def _hints(cls: Hashable) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _decode(hint: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _decode_dataclass(hint, value, where)
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _decode_union(typing.get_args(hint), value, where)
    if origin is typing.Literal:
        if value in typing.get_args(hint):
            return value
    elif origin is tuple:
        if isinstance(value, list):
            of = typing.get_args(hint)[0]
            return tuple(_decode(of, item, f"{where}[{i}]") for i, item in enumerate(value))
    elif origin is Mapping:
        if isinstance(value, dict):
            of = typing.get_args(hint)[1]
            return {key: _decode(of, item, f"{where}.{key}") for key, item in value.items()}
    elif hint is float:
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    elif isinstance(value, hint) and (hint is bool or not isinstance(value, bool)):
        return value
    raise _Mismatch(f"{where} has an unexpected value")


def _decode_dataclass(cls: type[Any], value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise _Mismatch(f"{where} is not an object")
    hints = _hints(typing.cast("Hashable", cls))
    found = {}
    for field in dataclasses.fields(cls):
        item = value.get(field.name, _MISSING)
        if item is not _MISSING:
            found[field.name] = _decode(hints[field.name], item, f"{where}.{field.name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise _Mismatch(f"{where}.{field.name} is missing")
    return cls(**found)


def _decode_union(options: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in options:
        return None
    # Exact types first, so that an int stays an int where a float would do too.
    for option in options:
        if option is type(value):
            return value
    for option in options:
        if option is not type(None):
            try:
                return _decode(option, value, where)
            except _Mismatch:
                continue
    raise _Mismatch(f"{where} has an unexpected value")
