"""Numbers as people read them."""

from __future__ import annotations

import pytest

from loaderscope.reports.words.units import bar, duration, factor, percent, rate, size


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0, "0 ns"),
        (4e-9, "4.00 ns"),
        (999.7e-9, "1.00 µs"),
        (27e-6, "27.0 µs"),
        (1.3249e-3, "1.32 ms"),
        (0.0999, "99.9 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.00 s"),
        (59.9, "59.9 s"),
        (59.97, "1 min 0 s"),
        (725, "12 min 5 s"),
        (12_000, "3 h 20 min"),
        (1e300, "277,777,777 h 46 min"),
    ],
)
def test_duration(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (None, "–"),
        (0, "0 %"),
        (1e-5, "< 0.1 %"),
        (0.004, "0.4 %"),
        (0.0996, "10 %"),
        (0.49, "49 %"),
        (15.8, "1,580 %"),
    ],
)
def test_percent(share: float | None, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (999, "999 B"), (786_560, "787 kB"), (23.5e9, "23.5 GB"), (2e18, "2,000 PB")],
)
def test_size(number: float, text: str) -> None:
    assert size(number) == text


def test_rate_and_factor() -> None:
    assert [rate(x) for x in (0.523, 9.96, 123.8, 11_025.4, None)] == [
        "0.52",
        "9.96",
        "124",
        "11,025",
        "–",
    ]
    assert [factor(x) for x in (1.0, 2.358, 29.4, 1e9, None)] == [
        "×1.00",
        "×2.4",
        "×29",
        "over ×1,000,000",
        "–",
    ]


@pytest.mark.parametrize(
    ("share", "width", "expected"),
    [
        (None, 4, "    "),
        (0.0, 4, "    "),
        (1e-9, 4, "▏   "),
        (0.5, 8, "████    "),
        (1.0, 4, "████"),
        (7.0, 4, "████"),
        (0.3, 4, "█▎  "),
        (0.3, 0, ""),
        (0.3, -2, ""),
    ],
)
def test_bar(share: float | None, width: int, expected: str) -> None:
    assert bar(share, width) == expected
