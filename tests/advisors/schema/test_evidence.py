"""Figures of advice: values with units, and how they read."""

from typing import Any

import pytest

from loaderscope.advisors.schema import evidence, figures
from loaderscope.advisors.schema.evidence import Figure, count, measured, us

READ = {
    us(3.5, "(estimated)", high=20): "3.50 µs to 20.0 µs (estimated)",
    evidence.size(240e6, "per minute"): "240 MB per minute",
    evidence.percent(0.3, "of the time"): "30 % of the time",
    evidence.figure(4, "times"): "4 times",
    evidence.in_cores(1): "1 core",
    evidence.in_cores(2.5): "2.5 cores",
    Figure("overlay (overlay)", "text"): "overlay (overlay)",
}


def test_a_figure_reads_with_its_unit() -> None:
    assert {each: str(each) for each in READ} == READ


def test_what_was_not_measured_is_no_evidence() -> None:
    found = measured({"a": us(None), "b": None, "c": "in words", "d": count(0)})
    assert found == {"c": Figure("in words", "text"), "d": Figure(0.0, "count")}


SHORT = {0: "0 ns", 4e-9: "4.00 ns", 999.7e-9: "1.00 µs", 27e-6: "27.0 µs", 1.3249e-3: "1.32 ms"}
LONG = {0.0999: "99.9 ms", 0.9994: "999 ms", 0.9996: "1.00 s", 59.9: "59.9 s", 59.97: "1 min 0 s"}
LONGER = {725: "12 min 5 s", 12_000: "3 h 20 min", 1e300: "277,777,777 h 46 min"}
SHOWN: Any = {
    figures.duration: {**SHORT, **LONG, **LONGER},
    figures.us: {0.5: "500 ns"},
    figures.percent: {0: "0 %", 1e-5: "< 0.1 %", 0.004: "0.4 %", 0.0996: "10 %", 15.8: "1,580 %"},
    figures.times: {0.2: "×0.20", 1.0: "×1.00", 2.358: "×2.4", 29.4: "×29", 1e9: "over ×1,000,000"},
    figures.size: {0: "0 B", 999: "999 B", 786_560: "787 kB", 23.5e9: "23.5 GB", 2e18: "2,000 PB"},
    figures.three: {0.523: "0.52", 9.96: "9.96", 12.38: "12.4", 123.8: "124", 11_025.4: "11,025"},
    figures.figure: {2: "2", 2.6: "2.6", 124: "124", 0: "0"},
    figures.count: {1280: "1,280"},
}


@pytest.mark.parametrize("shown", SHOWN, ids=[each.__name__ for each in SHOWN])
def test_numbers_as_people_read_them(shown: Any) -> None:
    assert {number: shown(number) for number in SHOWN[shown]} == SHOWN[shown]
