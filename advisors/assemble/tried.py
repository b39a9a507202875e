"""What tuning measured, next to what was predicted."""

from dataclasses import replace

from ...profiler.store.run.tuning import Three, Tried, Tuned, changed
from ..schema.gains import LEAST_GAIN
from ..schema.ranges import Range
from ..schema.report_model import LoaderReport, Recommendation
from ..schema.tuning_model import SettingsTrial, Tuning, certain


def with_trials(loader: LoaderReport, tuned: Tuned) -> LoaderReport:
    """The report of a loader whose settings were tried: each piece of advice that was tried says
    what it came to."""
    note = (
        f"Settings were tried during training ({tuned.said}): figures are of batches made with "
        "the settings of the code."
    )
    return replace(
        loader,
        recommendations=tuple(_tried(each, tuned) for each in loader.recommendations),
        rejected=tuple(_tried(each, tuned) for each in loader.rejected),
        notes=(*loader.notes, note) if tuned.trials else loader.notes,
        tuning=tuning_of(tuned),
    )


def tuning_of(tuned: Tuned) -> Tuning:
    """As a report has it."""
    trials = tuple(
        SettingsTrial(
            each.settings,
            each.base,
            each.outcome,
            _range(each.measured),
            _range(each.predicted),
            each.seconds,
            each.why,
        )
        for each in tuned.trials
    )
    return Tuning(tuned.own, tuned.chosen, tuned.decided, tuned.said, trials)


def trial_for(advice: Recommendation, tuned: Tuned | None) -> Tried | None:
    """The trial of what this advice changes, if it was measured."""
    changes = advice.change.params
    return tuned.trial_of(changes) if tuned is not None and changes else None


def why_not(advice: Recommendation, tuned: Tuned | None) -> str | None:
    """Why what trials measured speaks against this advice; None if it does not."""
    if tuned is None or advice.kind != "speed":
        return None
    trial = trial_for(advice, tuned)
    if trial is not None and trial.measured is not None and trial.outcome != "proven":
        _, middle, high = trial.measured
        if middle < 1:
            return "It was slower when it was tried."
        if high < LEAST_GAIN:
            return "It was no faster when it was tried."
    best = tuning_of(tuned).proven
    if best is None or best.measured is None or advice.predicted.low > best.measured.mid:
        return None
    proven = changed(tuned.own, best.settings)
    if any(proven.get(name, value) != value for name, value in advice.change.params.items()):
        return "Other settings were proven, and these are not certain to gain more."
    return None


def _tried(advice: Recommendation, tuned: Tuned) -> Recommendation:
    """With what its trial came to. What was tried for too short a time is shown, and is no
    measurement."""
    trial = trial_for(advice, tuned)
    if trial is None or (found := _range(trial.measured)) is None:
        return advice
    return replace(
        advice,
        measured=found.mid if certain(trial.outcome, found) else None,
        measured_range=found,
        measured_s=trial.seconds,
        tried=trial.outcome or "undecided",
    )


def _range(ends: Three | None) -> Range | None:
    return Range(*ends) if ends is not None else None
