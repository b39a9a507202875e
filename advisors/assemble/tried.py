"""What tuning measured, beside what was predicted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...profiler.base.metadata import Scalar
from ...profiler.store.run.tuning import Tried, Tuned
from ..rules.fetching.batched_getitems import NAME as BATCHED
from ..schema.report_model import LoaderReport, Range, Recommendation


def with_trials(loader: LoaderReport, tuned: Tuned) -> LoaderReport:
    """The report of a loader whose settings were tried: each piece of advice that was tried says what it came to."""
    note = f"Settings were tried while it trained ({tuned.said}): figures are of batches made with those of the code."
    return replace(
        loader,
        recommendations=tuple(_tried(each, tuned) for each in loader.recommendations),
        rejected=tuple(_tried(each, tuned) for each in loader.rejected),
        notes=(*loader.notes, note) if tuned.trials else loader.notes,
    )


def trial_for(advice: Recommendation, tuned: Tuned | None) -> Tried | None:
    """The trial of what this advice changes, where it was measured."""
    changes: Mapping[str, Scalar] = advice.change.params
    if advice.rule == BATCHED and "batch_size" in changes:
        changes = {"num_workers": 0, "batched": True}
    return tuned.trial_of(changes) if tuned is not None and changes else None


def _tried(advice: Recommendation, tuned: Tuned) -> Recommendation:
    trial = trial_for(advice, tuned)
    if trial is None or trial.measured is None:
        return advice
    found = Range(*trial.measured)
    return replace(advice, measured=found.mid, measured_range=found, measured_s=trial.seconds)
