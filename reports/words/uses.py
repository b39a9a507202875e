"""What a loader is for, where it is iterated over, and by which framework, in a few words."""

from __future__ import annotations

from ...advisors.code.dialects import NAMES
from ...advisors.schema.report_model import LoaderReport
from ...profiler.base.metadata import clean
from ...profiler.store.run.run import LoaderRun


def use_of(loader: LoaderReport | LoaderRun) -> str | None:
    """'training (train.py:41), Lightning', as far as it is known."""
    phase, place, framework = (loader.config.get(name) for name in ("phase", "place", "framework"))
    said = " ".join(
        [
            *([clean(phase, 60)] if isinstance(phase, str) else []),
            *([f"({clean(place, 60)})"] if place else []),
        ]
    )
    by = NAMES.get(framework) if isinstance(framework, str) else None
    return ", ".join(filter(None, (said, by))) or None
