"""Small drawings in text: courses and columns. Every mark is a shape, so that none needs its
colour."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from textual.content import Content

from ...profiler.base.metadata import clean

# Styles by meaning; the theme says which colours these are.
GOOD, FAIR, BAD = "$text-success", "$text-warning", "$text-error"
MARK = "$text-primary"
SECOND = "$text-accent"
DIM = "dim"

VERDICTS = {"input-bound": BAD, "balanced": FAIR, "compute-bound": GOOD, "too-short": MARK}
STATES = {
    "live": GOOD,
    "finished": MARK,
    "interrupted": FAIR,
    "crashed": BAD,
    "removed": BAD,
    "unreadable": BAD,
    "unknown": FAIR,
}

EIGHTHS_UP = " ▁▂▃▄▅▆▇█"

Values = Sequence[float | None]
Part = tuple[str, str]


def lines(parts: Sequence[Content]) -> Content:
    """Contents below each other."""
    return Content("\n").join(parts)


def text(value: object, limit: int = 400) -> str:
    """A text from the run, fit to be shown."""
    return clean(value, max(1, limit))


def line(*parts: str | Part) -> Content:
    """One line of styled pieces; nothing in them is markup."""
    return Content.assemble(*parts)


def resampled(values: Values, width: int) -> list[float | None]:
    """The values at `width` places: means where there are more, each repeated where there are
    fewer."""
    places = [place * len(values) // width for place in range(width + 1)] if values else []
    found: list[float | None] = []
    for low, high in pairwise(places):
        known = [value for value in values[low : max(high, low + 1)] if value is not None]
        found.append(sum(known) / len(known) if known else None)
    return found


def course(values: Values, width: int, height: int = 1, top: float | None = None) -> list[str]:
    """A course over time as columns of eighths, `height` lines high; a gap where nothing was
    measured."""
    points = resampled(values, width)
    most = top or max((value for value in points if value is not None), default=0.0)
    most = most if most > 0 else 1.0
    shares = [None if value is None else min(1.0, max(0.0, value / most)) for value in points]
    full = [None if share is None else round(share * height * 8) for share in shares]
    return [
        # A measured zero shows as a floor.
        "".join(
            " " if n is None else EIGHTHS_UP[max(int(row == 0), min(8, n - row * 8))] for n in full
        ).ljust(width)
        for row in reversed(range(height))
    ]


def heat(share: float | None) -> str:
    """The style of a share of something limited."""
    if share is None:
        return DIM
    return BAD if share >= 0.9 else FAIR if share >= 0.75 else GOOD


def fitted(value: str, width: int) -> str:
    """Exactly `width` columns of ASCII-width text: cut with an ellipsis, or padded."""
    if len(value) > width:
        return value[: max(0, width - 1)] + "…" if width > 0 else ""
    return value.ljust(width)
