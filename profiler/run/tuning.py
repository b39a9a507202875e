"""What tuning did with a loader, as its process wrote it down: `tune{LOADER}.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.errors import RunUnreadable
from ..base.metadata import Scalar, clean, integer, number, read_json, text

MOST_TRIALS, MOST_SWITCHES = 64, 1000
Three = tuple[float, float, float]


@dataclass(frozen=True)
class Tried:
    """One trial. `measured` and `predicted` are (low, mid, high) factors over the loader's own settings."""

    settings: Mapping[str, Scalar]
    predicted: Three | None
    measured: Three | None
    outcome: str | None  # proven, not faster, undecided, failed, not tried; None: the loop ended before
    why: str | None
    seconds: float


@dataclass(frozen=True)
class Switch:
    """From this batch of the epoch on, batches were made with these settings."""

    t_ns: int
    epoch: int
    batch: int
    settings: Mapping[str, Scalar]


@dataclass(frozen=True)
class Tuned:
    """Of one loader: the settings of its code, those in use at the end, and how it came to that."""

    own: Mapping[str, Scalar]
    chosen: Mapping[str, Scalar]
    decided: bool
    said: str
    trials: tuple[Tried, ...]
    switches: tuple[Switch, ...]

    def trial_of(self, changes: Mapping[str, Scalar]) -> Tried | None:
        """The trial of just these changes to the loader's own settings."""
        wanted = {**self.own, **changes}
        return next((each for each in self.trials if each.measured is not None and each.settings == wanted), None)

    def as_coded(self, t_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which of the batches handed over at these times were made with the settings of the code."""
        begins = np.array([each.t_ns for each in self.switches], np.int64)
        own = np.array([True, *(each.settings == self.own for each in self.switches)])
        found: npt.NDArray[np.bool_] = own[np.searchsorted(begins, t_ns, side="right")]
        return found


def read_tuning(path: Path, index: int, notes: list[str]) -> Tuned | None:
    """Of a loader of the process that recorded here; None for one that was not tuned."""
    file = path / f"tune{index}.json"
    if not file.is_file():
        return None
    try:
        data = read_json(file, notes)
    except RunUnreadable as error:
        notes.append(str(error))
        return None
    return Tuned(
        own=_settings(data.get("own")),
        chosen=_settings(data.get("chosen")),
        decided=data.get("decided") is True,
        said=text(data, "said") or "",
        trials=tuple(_tried(each) for each in _dicts(data.get("trials"))[:MOST_TRIALS]),
        switches=tuple(_switch(each) for each in _dicts(data.get("switches"))[-MOST_SWITCHES:]),
    )


def _tried(data: dict[str, Any]) -> Tried:
    return Tried(
        _settings(data.get("settings")),
        _three(data.get("predicted")),
        _three(data.get("measured")),
        text(data, "outcome"),
        text(data, "why"),
        number(data, "seconds") or 0.0,
    )


def _switch(data: dict[str, Any]) -> Switch:
    t_ns, epoch, batch = (integer(data, name) or 0 for name in ("t_ns", "epoch", "batch"))
    return Switch(t_ns, epoch, batch, _settings(data.get("settings")))


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _settings(value: Any) -> dict[str, Scalar]:
    if not isinstance(value, dict):
        return {}
    return {clean(str(name), 40): each for name, each in value.items() if isinstance(each, bool | int)}


def _three(value: Any) -> Three | None:
    if not isinstance(value, list) or len(value) != 3:
        return None
    low, mid, high = (each if isinstance(each, int | float) and not isinstance(each, bool) else 0.0 for each in value)
    return (float(low), float(mid), float(high)) if 0 < low <= mid <= high < float("inf") else None
