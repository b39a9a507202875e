"""What tuning measured on this host before, beside what had been predicted; and what predictions
learn from it.

Of a prediction, the logarithm of the factor is multiplied by `scale`, and the width of its range by
`width`: no change stays no change. Both are 1 without trials, and stay near 1 while there are few:
as if PRIOR trials of an ordinary gain had come out as the model says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ...profiler.base.errors import LoaderscopeError, RunUnreadable
from ...profiler.base.metadata import Scalar, clean, read_json, text
from ...profiler.store.run.run_finder import ID, run_ids
from ...profiler.store.run.tuning import Three, Tried, read_tuning
from ..schema.report_model import Range
from ..schema.tuning_model import UNSURE
from .accuracy import FOUR_IN_FIVE

MOST_RUNS = 200  # the newest before
FEWEST, PRIOR = 3, 10
ORDINARY = math.log(1.35)
MOST_OFF = 3.0  # half widths: one trial that was far off does not decide alone
SCALES, WIDTHS = (0.3, 1.5), (0.6, 3.0)
FACTORS = (0.001, 1000.0)  # what else a record holds is no measurement
BATCHED = ("batched",)  # whole batches by one look-up: no setting
# Trials are of settings; how well other changes are predicted they do not show.
KINDS = frozenset({"to_workers", "from_workers", "num_workers", "prefetch_factor", "pin_memory"})


@dataclass(frozen=True)
class Outcome:
    """One trial with what had been predicted, as it was shown, and what was measured."""

    run: str
    host: str | None
    changed: tuple[str, ...]  # names of arguments
    predicted: Range
    measured: Range
    scale: float = 1.0  # by which the prediction had been corrected already
    width: float = 1.0

    @property
    def error(self) -> float:
        """Of the likeliest factor: 0.1 is a tenth too much."""
        return self.predicted.mid / self.measured.mid - 1

    @property
    def inside(self) -> bool:
        return self.predicted.low <= self.measured.mid <= self.predicted.high

    @property
    def sure(self) -> bool:
        """Whether enough was measured to tell how good the prediction was."""
        return math.log(self.measured.high / self.measured.low) / 2 <= UNSURE

    @property
    def of_the_model(self) -> tuple[float, float]:
        """Logarithm and half width of the prediction without any correction."""
        half = math.log(self.predicted.high / self.predicted.low) / 2 / self.width
        return math.log(self.predicted.mid) / self.scale, max(0.02, half)


@dataclass(frozen=True)
class Correction:
    """From this many trials."""

    trials: int
    scale: float
    width: float

    def applied(self, found: Range) -> Range:
        mid = found.mid**self.scale
        low = mid * (found.low / found.mid) ** self.width
        return Range(low, mid, mid * (found.high / found.mid) ** self.width)

    def __str__(self) -> str:
        gains = (
            "as the model says"
            if abs(self.scale - 1) < 0.02
            else f"to the power of {self.scale:.2f}"
        )
        return (
            f"predictions of DataLoader settings are corrected by {self.trials} earlier trials on "
            f"this host (factors {gains}, ranges {self.width:.2f} times as wide)"
        )


def correction_from(outcomes: Iterable[Outcome]) -> Correction | None:
    """None where there are too few trials to say anything."""
    known = [each for each in outcomes if each.changed != BATCHED]
    if len(known) < FEWEST:
        return None
    points = [(*each.of_the_model, math.log(each.measured.mid)) for each in known]
    prior = PRIOR * ORDINARY**2
    scale = (sum(x * y for x, _, y in points) + prior) / (sum(x * x for x, _, _ in points) + prior)
    scale = min(SCALES[1], max(SCALES[0], scale))
    usual = FOUR_IN_FIVE**-2  # the mean square, in half widths, where four in five are inside
    off = [min(MOST_OFF, abs(y - scale * x) / half) ** 2 for x, half, y in points]
    width = math.sqrt((sum(off) + PRIOR * usual) / ((len(off) + PRIOR) * usual))
    return Correction(len(known), scale, min(WIDTHS[1], max(WIDTHS[0], width)))


@lru_cache(maxsize=64)
def correction_for(run: Path, host: str | None) -> Correction | None:
    """For a run's predictions, from those of the runs in its folder that began before it on the
    same host; None where there are too few."""
    if host is None or not ID.fullmatch(run.name):
        return None
    try:
        before = [name for name in run_ids(run.parent) if name < run.name]
    except LoaderscopeError:
        return None
    found = outcomes_of([run.parent / name for name in before[-MOST_RUNS:]])
    return correction_from(each for each in found if each.host == host)


def outcomes_of(runs: Sequence[Path]) -> Iterator[Outcome]:
    """The trials of these runs whose effect was predicted and measured well enough. Never raises
    for what a run contains."""
    return (each for each in predicted_trials(runs) if each.sure)


def predicted_trials(runs: Sequence[Path]) -> Iterator[Outcome]:
    """All of which the effect was predicted and measured at all. Never raises for what a run
    contains."""
    for run in runs:
        changed = 0
        for file in run.glob("p*/tune*.json"):  # a run that goes on is read again
            with suppress(OSError):
                changed = max(changed, file.stat().st_mtime_ns)
        if changed:
            yield from _of_run(run, changed)


@lru_cache(maxsize=4096)
def _of_run(run: Path, changed_ns: int) -> tuple[Outcome, ...]:
    found: list[Outcome] = []
    for file in sorted(run.glob("p*/tune*.json")):
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
                changed = _changed(tuned.own, trial)
                found.append(
                    Outcome(clean(run.name), host, changed, predicted, measured, *tuned.corrected)
                )
    return tuple(found)


def _range(ends: Three | None) -> Range | None:
    return (
        Range(*ends) if ends is not None and ends[0] > FACTORS[0] and ends[2] < FACTORS[1] else None
    )


def _changed(own: Mapping[str, Scalar], trial: Tried) -> tuple[str, ...]:
    if trial.settings.get("batched"):
        return BATCHED
    names = [name for name, value in trial.settings.items() if own.get(name) != value]
    return tuple(names) if trial.settings.get("num_workers") else ("num_workers",)
