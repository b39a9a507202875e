"""The published JSON schema: it is the dataclasses', and what is written is what it says."""

from __future__ import annotations

import functools
import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from loaderscope.advisors.schema.report_model import Report
from report_samples import hostile_report

jsonschema = pytest.importorskip("jsonschema")

DOCS = Path(__file__).parents[3] / "docs"
PUBLISHED = DOCS / "report-schema.json"
SCRIPT = runpy.run_path(str(DOCS.parent / ".ci" / "report_schema.py"))


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_published_schema_is_up_to_date() -> None:
    """Else: python .ci/report_schema.py docs/report-schema.json"""
    assert PUBLISHED.read_text(encoding="utf-8") == SCRIPT["render_schema"]()


@pytest.mark.parametrize("make", [lambda report: report, hostile_report], ids=["full", "hostile"])
def test_what_is_written_is_valid_and_comes_back_equal(report, validator, make):
    text = make(report).to_json()
    validator.validate(json.loads(text))
    assert Report.from_json(text) == make(report)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), 3),
        (("loaders", 0, "verdict"), "fast"),
        (("loaders", 0, "recommendations", 0, "predicted", "low"), None),
        (("loaders", 0, "stages", "wait", "mean_us"), "12"),
        (("run", "argv"), "train.py"),
    ],
)
def test_what_is_no_report_is_not_valid(report, validator, path, value):
    data = json.loads(report.to_json())
    *parents, last = path
    functools.reduce(lambda found, key: found[key], parents, data)[last] = value
    assert [tuple(error.absolute_path) for error in validator.iter_errors(data)] == [path]


def test_a_missing_field_is_not_valid_and_a_new_one_is(report: Report, validator: Any) -> None:
    data = json.loads(report.to_json())
    data["loaders"][0]["of a newer version"] = 1
    assert validator.is_valid(data)
    del data["loaders"][0]["verdict"]
    assert not validator.is_valid(data)
