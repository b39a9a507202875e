"""Trials of recorded runs: what tuning measured, and what had been predicted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...profiler.base.errors import RunUnreadable
from ...profiler.base.metadata import Scalar, clean, read_json, text
from ...profiler.store.run.tuning import Three, read_tuning
from ..schema.report_model import Range
from ..schema.tuning_model import UNSURE

FACTORS = (0.001, 1000.0)  # anything else in a record is not a measurement


@dataclass(frozen=True)
class Outcome:
    """One trial: the prediction as it was shown, and what was measured."""

    run: str
    host: str | None
    changed: tuple[str, ...]  # names of arguments; "batched" for whole batches by one lookup
    predicted: Range
    measured: Range

    @property
    def error(self) -> float:
        """The error of the likeliest factor: 0.1 is a tenth too much."""
        return self.predicted.mid / self.measured.mid - 1

    @property
    def inside(self) -> bool:
        return self.predicted.low <= self.measured.mid <= self.predicted.high

    @property
    def sure(self) -> bool:
        """Whether enough was measured to judge the prediction."""
        return math.log(self.measured.high / self.measured.low) / 2 <= UNSURE


def predicted_trials(runs: Iterable[Path]) -> Iterator[Outcome]:
    """The trials of these runs that were predicted and measured. Never raises for what a run
    contains."""
    for file in (file for run in runs for file in sorted(run.glob("p*/tune*.json"))):
        index = file.stem.removeprefix("tune")
        tuned = read_tuning(file.parent, int(index), []) if index.isdecimal() else None
        if tuned is None or tuned.follows is not None:
            continue
        try:
            host = text(read_json(file.parent / "process.json"), "host")
        except RunUnreadable:
            host = None
        for trial in tuned.trials:
            predicted, measured = _range(trial.predicted), _range(trial.measured)
            if predicted is not None and measured is not None:
                changed = _changed(tuned.own, trial.settings)
                yield Outcome(clean(file.parent.parent.name), host, changed, predicted, measured)


def _range(ends: Three | None) -> Range | None:
    return (
        Range(*ends) if ends is not None and ends[0] > FACTORS[0] and ends[2] < FACTORS[1] else None
    )


def _changed(own: Mapping[str, Scalar], settings: Mapping[str, Scalar]) -> tuple[str, ...]:
    if settings.get("batched"):
        return ("batched",)
    names = [name for name, value in settings.items() if own.get(name) != value]
    return tuple(names) if settings.get("num_workers") else ("num_workers",)
