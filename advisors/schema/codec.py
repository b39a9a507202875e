"""Frozen dataclasses to JSON and back, checked against their type hints. A round trip is exact."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, TypeVar

from ...profiler.base.errors import UsageError

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class _Version:
    """The first thing that every version of a report says."""

    schema: int


def dump(value: Any, indent: int | None) -> str:
    """JSON text of a dataclass. NaN and infinity cannot be written: such a figure must be None."""
    # Not by msgspec, which writes NaN as null, as if it had not been measured.
    return json.dumps(dataclasses.asdict(value), indent=indent, allow_nan=False, ensure_ascii=False)


def load(cls: type[T], text: str, schema: int) -> T:
    """The `cls` in a JSON text, of this schema or an older one. Unknown keys are ignored. Raises
    UsageError."""
    import msgspec

    try:
        version = msgspec.json.decode(text, type=_Version).schema
    except msgspec.ValidationError as error:
        raise UsageError("this is not a Loaderscope report: it names no schema") from error
    except (ValueError, RecursionError) as error:
        raise UsageError("this is not a Loaderscope report: it is not JSON") from error
    if version > schema:
        raise UsageError(
            f"this report has schema {version}, written by a newer Loaderscope: upgrade to read it"
        )
    if version < 1:
        raise UsageError(f"this report has the unknown schema {version}")
    try:
        if version == schema:
            return msgspec.json.decode(text, type=cls)
        data = json.loads(text, object_hook=_figures_of_schema_1)
        return msgspec.convert({**data, "schema": schema}, type=cls)
    except msgspec.ValidationError as error:
        problem = str(error).replace("`$", "`report")
        raise UsageError(
            f"this is not a Loaderscope report: {problem[:1].lower()}{problem[1:]}"
        ) from error


def _figures_of_schema_1(found: dict[str, Any]) -> dict[str, Any]:
    """In schema 1, the values of evidence were text."""
    evidence = found.get("evidence")
    if isinstance(evidence, dict):
        for name, value in evidence.items():
            if isinstance(value, str):
                evidence[name] = {"value": value, "unit": "text"}
    return found
