"""Figures as people read them, and the reasons where there is none."""

from collections.abc import Callable, Iterable

from ...advisors.schema import figures

UNKNOWN = "–"


def _or_unknown(shown: Callable[[float], str]) -> Callable[[float | None], str]:
    return lambda value: UNKNOWN if value is None else shown(value)


duration = _or_unknown(figures.duration)  # of seconds: '27 µs', '4.10 s', '12 min 5 s'
micros = _or_unknown(figures.us)  # a duration given in microseconds
percent = _or_unknown(figures.percent)  # of a share: '49 %', '0.4 %', '< 0.1 %'
size = _or_unknown(figures.size)  # '787 kB', '23.5 GB': decimal, as disks and `watch` say it
count = _or_unknown(figures.count)  # '1,280'
rate = _or_unknown(figures.three)  # '124', '1,981', '0.52': three digits are enough
factor = _or_unknown(figures.times)  # '×0.21', '×1.8', '×24'


def span(low: float | None, high: float | None) -> str:
    """'66–75 %', one figure where both round to it."""
    first, second = percent(low), percent(high)
    return first if first == second else f"{first.removesuffix(' %')}–{second}"


def plural(number: int, one: str, many: str = "") -> str:
    """'1 sample', '1,280 samples'; `many` is the plural that is more than an s."""
    return f"{count(number)} {one if number == 1 else many or f'{one}s'}"


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
