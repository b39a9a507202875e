"""Figures as people read them, and the reasons where there is none."""

from __future__ import annotations

from collections.abc import Iterable

from ...advisors.schema import figures
from ...advisors.schema.evidence import Figure

UNKNOWN = "–"


def duration(seconds: float | None) -> str:
    """'27 µs', '1.32 ms', '4.10 s', '12 min 5 s', '3 h 20 min'."""
    return UNKNOWN if seconds is None else figures.duration(seconds)


def micros(value: float | None) -> str:
    """A duration given in microseconds."""
    return UNKNOWN if value is None else figures.us(value)


def percent(share: float | None) -> str:
    """'49 %', '0.4 %', '< 0.1 %'."""
    return UNKNOWN if share is None else figures.percent(share)


def span(low: float, high: float) -> str:
    """'66–75 %', one figure where both round to it."""
    first, second = percent(low), percent(high)
    return first if first == second else f"{first.removesuffix(' %')}–{second}"


def size(number: float | None) -> str:
    """'787 kB', '23.5 GB': decimal, as disks and `watch` say it."""
    return UNKNOWN if number is None else figures.size(number)


def count(number: float | None) -> str:
    """'1,280'."""
    return UNKNOWN if number is None else figures.count(number)


def plural(number: int, one: str, many: str) -> str:
    """'1 batch', '1,280 batches'."""
    return f"{count(number)} {one if number == 1 else many}"


def rate(number: float | None) -> str:
    """'124', '1,981', '0.52': three digits are enough for a rate."""
    return UNKNOWN if number is None else figures.three(number)


def factor(number: float | None) -> str:
    """'×0.21', '×1.8', '×24'."""
    return UNKNOWN if number is None else figures.times(number)


def figure(found: Figure) -> str:
    """A figure of advice with its unit, as all formats show it."""
    return str(found)


def known(between: str, *parts: tuple[str, object]) -> str:
    """The texts of (text, figure) pairs of which the figure is known."""
    return between.join(text for text, value in parts if value is not None)


def bar(share: float | None, width: int) -> str:
    """A bar of eighths of a character, padded to `width`; anything above zero shows."""
    if share is None or share <= 0 or width <= 0:
        return " " * max(0, width)
    eighths = max(1, round(min(share, 1.0) * width * 8))
    return ("█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()).ljust(width)


def by_reason(found: Iterable[tuple[str, str]]) -> str:
    """'pack, queued (no workers); pin (pin_memory is off)' of (name, reason) pairs."""
    together: dict[str, list[str]] = {}
    for name, reason in found:
        together.setdefault(reason, []).append(name)
    return "; ".join(f"{', '.join(names)} ({reason})" for reason, names in together.items())
