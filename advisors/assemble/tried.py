"""What tuning measured, beside what was predicted."""

from __future__ import annotations

from dataclasses import replace

from ...profiler.run.tuning import Tuned
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


def _tried(advice: Recommendation, tuned: Tuned) -> Recommendation:
    trial = tuned.trial_of(advice.change.params) if advice.change.params else None
    if trial is None or trial.measured is None:
        return advice
    found = Range(*trial.measured)
    return replace(advice, measured=found.mid, measured_range=found, measured_s=trial.seconds)
