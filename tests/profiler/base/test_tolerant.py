"""Run files as types: whole ones, and every way in which one may not fit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated

import pytest
from msgspec import Meta, Struct

from loaderscope.profiler.base.errors import RunUnreadable
from loaderscope.profiler.base.tolerant import Count, Share, Text, as_json, fitted, read_as


class Row(Struct, frozen=True, array_like=True):
    name: Text
    calls: Count
    cost: Annotated[int, Meta(ge=-1)] = -1


class Span(Struct, frozen=True):
    low: float
    high: float

    def __post_init__(self):
        if self.low > self.high:
            raise ValueError("low is above high")


class Facts(Struct, frozen=True):
    name: Text = "unknown"
    short: Annotated[str, Meta(max_length=4)] = ""
    share: Share | None = None
    shape: tuple[Count, ...] | None = None
    words: tuple[str, ...] = ()
    rows: Annotated[tuple[Row, ...], Meta(max_length=3)] = ()
    span: Span | None = None
    count: int | tuple[int, ...] | None = None
    reasons: Mapping[str, str] = {}
    inside: Annotated[tuple[Facts, ...], Meta(max_length=2)] = ()


WHOLE = {
    "name": "x",
    "short": "abcd",
    "share": 0.5,
    "shape": [2, 3],
    "words": ["a", "b"],
    "rows": [["read", 2, 7]],
    "span": {"low": 1, "high": 2.0},
    "count": [1, 2],
    "reasons": {"a": "b"},
    "inside": [{"name": "y"}],
}


def test_what_is_whole_arrives():
    found = fitted(WHOLE, Facts)
    rows = (Row("read", 2, 7),)
    inside = (Facts("y"),)
    assert found == Facts(
        "x", "abcd", 0.5, (2, 3), ("a", "b"), rows, Span(1.0, 2.0), (1, 2), {"a": "b"}, inside
    )
    assert fitted(json.loads(json.dumps(as_json(found))), Facts) == found


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("name", ["x"], "unknown"),
        ("short", "abcdefgh", "abcd"),
        ("share", 1.5, None),
        ("share", True, None),
        ("share", 1, 1.0),
        ("shape", [2, -1], None),
        ("words", ["a", 1, None, "b"], ()),
        ("rows", [["a", 1], ["b"], "c", ["d", 1, 1]], (Row("a", 1),)),
        ("rows", [["d", -1, 1], ["e", 1, -2], ["f", 1, 1, "more"]], (Row("e", 1), Row("f", 1, 1))),
        ("span", {"low": 3, "high": 2}, None),
        ("span", {"low": 3}, None),
        ("count", "8", None),
        ("reasons", {"a": "b", "c": 1, "d": None}, {}),
        ("inside", [{"name": 1, "share": 0.25}, 3, {}, {}], (Facts(share=0.25),)),
        ("nobody knows it", 1, None),
    ],
)
def test_what_does_not_fit_costs_itself_alone(field, value, expected):
    found, whole = as_json(fitted({**WHOLE, field: value}, Facts)), as_json(fitted(WHOLE, Facts))
    assert getattr(fitted({**WHOLE, field: value}, Facts), field, None) == expected
    assert {**found, field: 0} == {**whole, field: 0}


@pytest.mark.parametrize("value", [None, 3, "x", [[]], {}])
def test_another_value_altogether_is_as_if_nothing_were_known(value):
    assert fitted(value, Facts) == Facts()


def test_a_file_is_cleaned_and_its_impossible_numbers_are_told(tmp_path):
    path = tmp_path / "facts.json"
    path.write_text('{"name": "\\u001b[31mred", "share": NaN, "reasons": {"x": "\\ud800"}}')
    notes = []
    found = read_as(Facts, path, notes)
    assert found.name.isprintable() and "red" in found.name
    assert found.share is None and found.reasons["x"].isprintable()
    assert len(notes) == 1 and "share" in notes[0]
    with pytest.raises(RunUnreadable):
        read_as(Facts, tmp_path / "nowhere.json")
