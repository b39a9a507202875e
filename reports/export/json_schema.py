"""The JSON schema of a report, from the dataclasses themselves.

To renew the published one:  python -m loaderscope.reports.export.json_schema docs/report-schema.json
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import sys
import textwrap
import types
import typing
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

from ...advisors.schema.report_model import SCHEMA, Report

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def report_schema(of: type[Any] = Report, version: int = SCHEMA) -> dict[str, Any]:
    """The schema (draft 2020-12) of what `Report.to_json` writes.

    Unknown keys are allowed, as reading allows them: a newer version may add some. Fields with a default need not be
    there.
    """
    definitions: dict[str, Any] = {}
    root = _of(of, definitions)
    definitions[of.__name__]["properties"]["schema"] = {"const": version}
    return {
        "$schema": DIALECT,
        "title": f"Loaderscope {of.__name__.lower()}, schema {version}",
        **root,
        "$defs": dict(sorted(definitions.items())),
    }


def render_schema() -> str:
    """The schema as JSON text."""
    return json.dumps(report_schema(), indent=2, ensure_ascii=False) + "\n"


def _of(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}  # stands for itself while its own fields are looked at
            definitions[hint.__name__] = _dataclass(hint, definitions)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        options = [_of(each, definitions) for each in arguments]
        if all(set(option) == {"type"} for option in options):
            return {"type": [option["type"] for option in options]}
        return {"anyOf": options}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin is tuple:
        return {"type": "array", "items": _of(arguments[0], definitions)}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _of(arguments[1], definitions)}
    return {"type": _SIMPLE[hint]}


def _dataclass(cls: type[Any], definitions: dict[str, Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(typing.cast("Any", cls))
    comments = _comments(typing.cast("Hashable", cls))
    fields = dataclasses.fields(cls)
    properties = {}
    for field in fields:
        properties[field.name] = _of(hints[field.name], definitions)
        if field.name in comments:
            properties[field.name] = {**properties[field.name], "description": comments[field.name]}
    missing = dataclasses.MISSING
    return {
        "description": " ".join((inspect.getdoc(cls) or "").split()),
        "type": "object",
        "properties": properties,
        "required": [f.name for f in fields if f.default is missing and f.default_factory is missing],
    }


def _comments(cls: Any) -> dict[str, str]:
    """Field → the comment that ends its line in the source."""
    source = textwrap.dedent(inspect.getsource(cls))
    lines = source.splitlines()
    (body,) = ast.parse(source).body
    assert isinstance(body, ast.ClassDef)
    found = {}
    for node in body.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.end_col_offset is not None:
            # Columns of the syntax tree are bytes.
            rest = lines[(node.end_lineno or node.lineno) - 1].encode()[node.end_col_offset :].decode().strip()
            if rest.startswith("#"):
                found[node.target.id] = rest.lstrip("# ")
    return found


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(render_schema(), encoding="utf-8")
    else:
        sys.stdout.write(render_schema())
