"""Figures of advice: values with units, and how they read."""

from __future__ import annotations

import pytest

from loaderscope.advisors.schema import evidence, figures
from loaderscope.advisors.schema.evidence import Figure, count, measured, us


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (us(3.5, "(estimated)", high=20), "3.50 µs to 20.0 µs (estimated)"),
        (evidence.size(240e6, "per minute"), "240 MB per minute"),
        (evidence.percent(0.3, "of the time"), "30 % of the time"),
        (evidence.figure(4, "times"), "4 times"),
        (evidence.in_cores(1), "1 core"),
        (evidence.in_cores(2.5), "2.5 cores"),
        (Figure("overlay (overlay)", "text"), "overlay (overlay)"),
    ],
)
def test_a_figure_reads_with_its_unit(value: Figure, text: str) -> None:
    assert str(value) == text


def test_what_was_not_measured_is_no_evidence() -> None:
    found = measured({"a": us(None), "b": None, "c": "in words", "d": count(0)})
    assert found == {"c": Figure("in words", "text"), "d": Figure(0.0, "count")}


def test_figures() -> None:
    read = {
        figures.us: {0.5: "500 ns", 27.3: "27.3 µs", 1320: "1.32 ms", 4.1e6: "4.10 s"}
        | {7.3e8: "12 min 10 s", 9e9: "2 h 30 min"},
        figures.percent: {0.49: "49 %", 0.004: "0.4 %", 0.0001: "< 0.1 %", 0: "0 %", 1.5: "150 %"},
        figures.times: {2.357: "×2.4", 0.2: "×0.20", 12.4: "×12"},
        figures.size: {12: "12 B", 787_000: "787 kB", 23.5e9: "23.5 GB"},
        figures.figure: {2: "2", 2.6: "2.6", 124: "124", 0: "0"},
        figures.count: {1280: "1,280"},
    }
    for words, told in read.items():
        assert {value: words(value) for value in told} == told  # type: ignore[operator]
