"""Figures as text."""

from __future__ import annotations

import pytest

from loaderscope.advisors.schema import figures


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5, "500 ns"), (27.3, "27.3 µs"), (1320, "1.32 ms"), (4.1e6, "4.10 s"), (7.3e8, "12 min 10 "
    "s"),
     (9e9, "2 h 30 min")],
)  # fmt: skip
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
