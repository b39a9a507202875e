"""Writes the JSON schema of a report, from the dataclasses themselves.

python .ci/report_schema.py docs/report-schema.json
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from loaderscope.advisors.schema import rank_model, report_model
from loaderscope.advisors.schema.report_model import SCHEMA, Report

_COMMENT = re.compile(r"^    (\w+): .*  # (.+)$", re.MULTILINE)  # behind a field
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def report_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) of what `Report.to_json` writes.

    Unknown keys are allowed, as reading allows them: a newer version may add some. Fields with a
    default need not be there.
    """
    made = msgspec.json.schema(Report)
    definitions = dict(sorted(made["$defs"].items()))
    for definition in definitions.values():
        if "description" in definition:  # Python 3.13 and later keep no indentation
            definition["description"] = inspect.cleandoc(definition["description"])
        for value in definition.get("properties", {}).values():
            if value.get("default") == {}:  # msgspec 0.23 and later
                del value["default"]
    for name, field, comment in _comments():
        definitions[name]["properties"][field]["description"] = comment
    definitions["Report"]["properties"]["schema"] = {"const": SCHEMA}
    return {
        "$schema": DIALECT,
        "title": f"Loaderscope report, schema {SCHEMA}",
        "$ref": made["$ref"],
        "$defs": definitions,
    }


def render_schema() -> str:
    """The schema as JSON text."""
    return json.dumps(report_schema(), indent=2, ensure_ascii=False) + "\n"


def _comments() -> Iterator[tuple[str, str, str]]:
    """(class, field, the comment that ends its line in the source)."""
    for module in (rank_model, report_model):
        for cls in filter(inspect.isclass, vars(module).values()):
            if cls.__module__ == module.__name__:
                for field, comment in _COMMENT.findall(inspect.getsource(cls)):
                    yield cls.__name__, field, comment


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(render_schema(), encoding="utf-8")
    else:
        sys.stdout.write(render_schema())
