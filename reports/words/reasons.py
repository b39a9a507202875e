"""What could not be measured or judged, by why not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...profiler.base.metadata import clean

MAX_REASON = 300


def by_reason(found: Iterable[tuple[str, str]], limit: int = 40) -> Iterator[tuple[str, str]]:
    """('pack, queued', 'no workers') of (name, reason) pairs: what lacks the same thing stands
    together."""
    together: dict[str, list[str]] = {}
    for name, reason in found:
        together.setdefault(clean(reason, MAX_REASON), []).append(clean(name, limit))
    for reason, names in together.items():
        yield ", ".join(names), reason
