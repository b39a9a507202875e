"""What could not be measured or judged, by its reason."""

from __future__ import annotations

from collections.abc import Iterable

from ...profiler.base.metadata import clean


def by_reason(found: Iterable[tuple[str, str]]) -> str:
    """'pack, queued (no workers); pin (pin_memory is off)' of (name, reason) pairs."""
    together: dict[str, list[str]] = {}
    for name, reason in found:
        together.setdefault(clean(reason, 300), []).append(clean(name, 60))
    return "; ".join(f"{', '.join(names)} ({reason})" for reason, names in together.items())
