"""Numbers as people read them."""

from __future__ import annotations

from typing import Any

import pytest

from loaderscope.reports.words.units import bar, duration, factor, percent, rate, size

# What shows it, and of each number its text.
SHOWN: dict[Any, dict[float | None, str]] = {
    duration: {
        None: "–",
        0: "0 ns",
        4e-9: "4.00 ns",
        999.7e-9: "1.00 µs",
        27e-6: "27.0 µs",
        1.3249e-3: "1.32 ms",
        0.0999: "99.9 ms",
        0.9994: "999 ms",
        0.9996: "1.00 s",
        59.9: "59.9 s",
        59.97: "1 min 0 s",
        725: "12 min 5 s",
        12_000: "3 h 20 min",
        1e300: "277,777,777 h 46 min",
    },
    percent: {
        None: "–",
        0: "0 %",
        1e-5: "< 0.1 %",
        0.004: "0.4 %",
        0.0996: "10 %",
        0.49: "49 %",
        15.8: "1,580 %",
    },
    size: {0: "0 B", 999: "999 B", 786_560: "787 kB", 23.5e9: "23.5 GB", 2e18: "2,000 PB"},
    rate: {0.523: "0.52", 9.96: "9.96", 123.8: "124", 11_025.4: "11,025", None: "–"},
    factor: {1.0: "×1.00", 2.358: "×2.4", 29.4: "×29", 1e9: "over ×1,000,000", None: "–"},
}


@pytest.mark.parametrize("shown", SHOWN, ids=["duration", "percent", "size", "rate", "factor"])
def test_numbers(shown: Any) -> None:
    assert {number: shown(number) for number in SHOWN[shown]} == SHOWN[shown]


@pytest.mark.parametrize(
    ("width", "drawn"),
    [
        (4, {None: "    ", 0.0: "    ", 1e-9: "▏   ", 1.0: "████", 7.0: "████", 0.3: "█▎  "}),
        (8, {0.5: "████    "}),
        (0, {0.3: ""}),
        (-2, {0.3: ""}),
    ],
)
def test_bar(width: int, drawn: dict[float | None, str]) -> None:
    assert {share: bar(share, width) for share in drawn} == drawn
