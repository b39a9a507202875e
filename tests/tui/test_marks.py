"""Courses say what they are given."""

from __future__ import annotations

import pytest

from loaderscope.reports.words.curves import resampled
from loaderscope.tui.draw.marks import course, fitted


def test_course_fills_its_height_from_below() -> None:
    assert course([0, 1, 2, 4], 4, height=2, top=4) == ["   █", "▁▄██"]


def test_what_was_not_measured_is_a_gap_and_zero_a_floor() -> None:
    assert course([None, 0.0, 5.0], 3) == [" ▁█"]


def test_more_values_than_room_become_means() -> None:
    assert resampled([0, 2, 4, 6], 2)[1].tolist() == [1, 5]
    assert resampled([1, 2], 4)[1].tolist() == [1, 1, 2, 2]
    assert resampled([], 4)[1].tolist() == []


@pytest.mark.parametrize(
    ("text", "width", "expected"), [("abc", 5, "abc  "), ("abcdef", 4, "abc…"), ("abc", 0, "")]
)
def test_fitted(text: str, width: int, expected: str) -> None:
    assert fitted(text, width) == expected
