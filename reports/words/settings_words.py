"""Settings of a DataLoader as one writes them."""

from __future__ import annotations

from collections.abc import Mapping

from ...profiler.base.metadata import Scalar
from ...profiler.store.run.tuning import WHOLE_BATCHES


def changed_arguments(own: Mapping[str, Scalar], settings: Mapping[str, Scalar]) -> str:
    """The arguments that differ, as they are written; without workers some may not be given. Whole batches, which are
    code for the data set, in words."""
    batched = [WHOLE_BATCHES] if settings.get("batched") else []
    if not settings.get("num_workers"):
        settings = {k: v for k, v in settings.items() if k in ("num_workers", "pin_memory")}
    elif not own.get("num_workers"):  # they were not given, and 2 is the default
        own = {**own, "prefetch_factor": 2}
    changed = [f"{name}={value}" for name, value in settings.items() if own.get(name) != value]
    return ", ".join([*changed, *batched])
