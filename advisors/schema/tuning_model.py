"""What a report says of settings that were tried during training."""

from dataclasses import dataclass
from math import log

from ...profiler.base.metadata import Scalars
from .ranges import Range

UNSURE = 0.25  # an interval this wide, in logarithm on each side, says little


def certain(outcome: str | None, measured: Range | None) -> bool:
    """Whether a trial shows how fast its settings are: it proved a gain, or found none and knows
    the factor well."""
    if outcome == "proven":
        return True
    return (
        outcome == "not faster"
        and measured is not None
        and log(measured.high / measured.low) / 2 <= UNSURE
    )


@dataclass(frozen=True)
class SettingsTrial:
    """One trial. The settings took turns with `base`; `measured` and `predicted` are over those of
    the code."""

    settings: Scalars
    base: Scalars
    outcome: (
        str | None
    )  # proven, not faster, undecided, failed, not tried; None: the loop ended before
    measured: Range | None
    predicted: Range | None
    seconds: float
    why: str | None


@dataclass(frozen=True)
class Tuning:
    """Of one loader: the settings of its code, those in use at the end, how they were chosen, and
    all trials."""

    own: Scalars
    chosen: Scalars
    decided: bool
    said: str
    trials: tuple[SettingsTrial, ...]

    @property
    def best(self) -> SettingsTrial | None:
        """The settings to write into the code: proven, or kept by hand."""
        kept = [each for each in self.trials if each.settings == self.chosen and self.decided]
        proven = [each for each in self.trials if each.outcome == "proven"]
        return next(reversed(kept or proven), None)

    @property
    def proven(self) -> SettingsTrial | None:
        """The trial that was proven and not found slower later."""
        best = self.best
        return best if best is not None and best.outcome == "proven" else None
