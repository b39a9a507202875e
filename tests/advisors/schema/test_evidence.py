"""Figures of advice: values with units, and how they read."""

from __future__ import annotations

import pytest

from loaderscope.advisors.schema import figures
from loaderscope.advisors.schema.evidence import (
    Figure,
    count,
    figure,
    in_cores,
    measured,
    percent,
    size,
    times,
    us,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (us(3400), "3.40 ms"),
        (us(3.5, "(estimated)", high=20), "3.50 µs to 20.0 µs (estimated)"),
        (size(240e6, "per minute"), "240 MB per minute"),
        (percent(0.3, "of the time"), "30 % of the time"),
        (count(1280), "1,280"),
        (figure(4, "times"), "4 times"),
        (in_cores(1), "1 core"),
        (in_cores(2.5), "2.5 cores"),
        (times(2.357), "×2.4"),
        (Figure("overlay (overlay)", "text"), "overlay (overlay)"),
    ],
)
def test_a_figure_reads_with_its_unit(value: Figure, text: str) -> None:
    assert str(value) == text


def test_what_was_not_measured_is_no_evidence() -> None:
    found = measured({"a": us(None), "b": None, "c": "in words", "d": count(0)})
    assert found == {"c": Figure("in words", "text"), "d": Figure(0.0, "count")}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "500 ns"),
        (27.3, "27.3 µs"),
        (1320, "1.32 ms"),
        (4.1e6, "4.10 s"),
        (7.3e8, "12 min 10 s"),
        (9e9, "2 h 30 min"),
    ],
)
def test_us(value: float, text: str) -> None:
    assert figures.us(value) == text


def test_figures() -> None:
    assert [figures.percent(x) for x in (0.49, 0.004, 0.0001, 0, 1.5)] == [
        "49 %",
        "0.4 %",
        "< 0.1 %",
        "0 %",
        "150 %",
    ]
    assert [figures.times(x) for x in (2.357, 0.2, 12.4)] == ["×2.4", "×0.20", "×12"]
    assert [figures.size(x) for x in (12, 787_000, 23.5e9)] == ["12 B", "787 kB", "23.5 GB"]
    assert [figures.figure(x) for x in (2, 2.6, 124, 0)] == ["2", "2.6", "124", "0"]
    assert figures.count(1280) == "1,280"
