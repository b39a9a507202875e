"""The figures that back a piece of advice: a value, its unit, and how both read as text.

A rule makes them by unit: `us(3400.0)` reads "3.40 ms". What was not measured makes no figure.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from . import figures

Unit = Literal["us", "bytes", "share", "count", "number", "cores", "factor", "text"]

_WORDS: Mapping[str, Callable[[Any], str]] = {
    "us": figures.us,
    "bytes": figures.size,
    "share": figures.percent,
    "count": figures.count,
    "number": figures.figure,
    "cores": lambda value: f"{figures.figure(value)} core{'s' * (value != 1)}",
    "factor": figures.times,
    "text": str,
}


@dataclass(frozen=True)
class Figure:
    """A value in its unit; with `high`, a range from `value` to `high`. Shares are fractions of 1.

    `note` says what it is of or per ("per step").
    """

    value: float | str
    unit: Unit
    high: float | None = None
    note: str = ""

    def __str__(self) -> str:
        ends = [_WORDS[self.unit](end) for end in (self.value, self.high) if end is not None]
        return f"{' to '.join(ends)} {self.note}".rstrip()


Evidence = Mapping[str, Figure | str | None]


def _figure(
    unit: Unit, value: float | None, note: str = "", *, high: float | None = None
) -> Figure | None:
    return None if value is None else Figure(float(value), unit, high, note)


us = partial(_figure, "us")
size = partial(_figure, "bytes")
percent = partial(_figure, "share")
count = partial(_figure, "count")
figure = partial(_figure, "number")
in_cores = partial(_figure, "cores")
times = partial(_figure, "factor")


def measured(evidence: Evidence) -> dict[str, Figure]:
    """The evidence without what was not measured; plain text becomes a figure too."""
    return {
        name: Figure(found, "text") if isinstance(found, str) else found
        for name, found in evidence.items()
        if found is not None
    }
