"""Frozen dataclasses to JSON and back, checked against their type hints. A round trip is exact."""

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
    """The `cls` in a JSON text, of this schema. Unknown keys are ignored. Raises
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
    if version < schema:
        raise UsageError(
            f"this report has schema {version}, which is no longer read: make it anew from its run"
        )
    try:
        return msgspec.json.decode(text, type=cls)
    except msgspec.ValidationError as error:
        problem = str(error).replace("`$", "`report")
        raise UsageError(
            f"this is not a Loaderscope report: {problem[:1].lower()}{problem[1:]}"
        ) from error
