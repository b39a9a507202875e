"""Numbers as people read them."""

from __future__ import annotations

UNKNOWN = "–"


def duration(seconds: float | None) -> str:
    """'27 µs', '1.32 ms', '4.1 s', '12 min 5 s', '3 h 20 min': three significant digits below a minute."""
    if seconds is None:
        return UNKNOWN
    for limit, scale, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "µs"), (1.0, 1e3, "ms"), (59.95, 1.0, "s")):
        if seconds < limit * (0.9995 if unit != "s" else 1):
            return f"{_three(seconds * scale)} {unit}"
    whole = round(min(seconds, 1e12))
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


def micros(value: float | None) -> str:
    """A duration given in microseconds."""
    return duration(value / 1e6 if value is not None else None)


def percent(share: float | None) -> str:
    """'49 %', '0.4 %', '< 0.1 %'."""
    if share is None:
        return UNKNOWN
    value = share * 100
    if 0 < value < 0.05:
        return "< 0.1 %"
    return f"{value:.1f} %" if 0 < value < 9.95 else f"{value:,.0f} %"


def span(low: float, high: float) -> str:
    """'66–75 %', one figure where both round to it."""
    first, second = percent(low), percent(high)
    return first if first == second else f"{first.removesuffix(' %')}–{second}"


def size(number: float | None) -> str:
    """'787 kB', '23.5 GB': decimal, as disks and `watch` say it."""
    if number is None:
        return UNKNOWN
    value = float(number)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(value) < 999.5:
            return f"{value:.0f} B" if unit == "B" else f"{_three(value)} {unit}"
        value /= 1000
    return f"{_three(value)} PB"


def count(number: float | None) -> str:
    """'1,280'."""
    return UNKNOWN if number is None else f"{number:,.0f}"


def plural(number: int, one: str, many: str) -> str:
    """'1 batch', '1,280 batches'."""
    return f"{count(number)} {one if number == 1 else many}"


def rate(number: float | None) -> str:
    """'124', '1,981', '0.52': three digits are enough for a rate."""
    return UNKNOWN if number is None else _three(number)


def factor(number: float | None) -> str:
    """'2.36×'."""
    if number is None:
        return UNKNOWN
    return f"{number:.2f}×" if number < 9.995 else f"{number:,.0f}×" if number < 1e6 else "over a million ×"


def _three(value: float) -> str:
    magnitude = abs(value)
    if magnitude >= 99.95:
        return f"{value:,.0f}"
    if magnitude >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if magnitude else "0"
