"""What tuning did with a loader, as its process wrote it down: `tune{LOADER}.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from ...base.atomic_write import write_atomically
from ...base.errors import RunUnreadable
from ...base.metadata import Scalar, clean, integer, number, read_json, text
from ...base.torch_parts import DEFAULT_PREFETCH

MOST_TRIALS, MOST_SWITCHES = 64, 1000
OF_WORKERS = ("prefetch_factor", "persistent_workers", "in_order")
WHOLE_BATCHES = "whole batches by one look-up"  # in words: no argument of DataLoader's says it
# What a dashboard asks a tuned loader for: to keep what is tried now, to put the code's settings
# back, to try no more.
Wish = Literal["keep", "back", "stop"]
WISHES: tuple[Wish, ...] = get_args(Wish)
Three = tuple[float, float, float]


@dataclass(frozen=True)
class Tried:
    """One trial. `measured` and `predicted` are (low, mid, high) factors over the loader's own
    settings."""

    settings: Mapping[str, Scalar]
    predicted: Three | None
    measured: Three | None
    base: Mapping[str, Scalar]  # what took turns with it
    base_rates: tuple[float, ...]  # batches a second, a window
    rates: tuple[float, ...]
    outcome: (
        str | None
    )  # proven, not faster, undecided, failed, not tried; None: the loop ended before
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
    follows: int | None = None  # the rank that decided for this one; the trials are its
    waiting: tuple[Tried, ...] = ()  # to be tried next
    corrected: tuple[float, float] = (
        1.0,
        1.0,
    )  # scale and width by which earlier trials had corrected predictions

    def trial_of(self, changes: Mapping[str, Scalar]) -> Tried | None:
        """The trial of just these changes to the loader's own settings."""
        wanted = _that_count({**self.own, **changes})
        measured = (each for each in self.trials if each.measured is not None)
        return next((each for each in measured if _that_count(each.settings) == wanted), None)

    def as_coded(self, t_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which of the batches handed over at these times were made with the settings of the
        code."""
        begins = np.array([each.t_ns for each in self.switches], np.int64)
        own = np.array([True, *(each.settings == self.own for each in self.switches)])
        found: npt.NDArray[np.bool_] = own[np.searchsorted(begins, t_ns, side="right")]
        return found


def changed(own: Mapping[str, Scalar], settings: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The arguments of these settings to write in place of one's own; what is not said is as torch
    has it."""
    own = {
        "prefetch_factor": DEFAULT_PREFETCH,
        "persistent_workers": False,
        "in_order": True,
        "batched": False,
        **own,
    }
    return {name: value for name, value in settings.items() if own.get(name) != value}


def changed_words(own: Mapping[str, Scalar], settings: Mapping[str, Scalar]) -> str:
    """The same as one writes it; whole batches, which are code for the data set, in words."""
    found = changed(own, settings)
    batched = [WHOLE_BATCHES] if found.pop("batched", False) else []
    return ", ".join([*(f"{name}={value}" for name, value in found.items()), *batched])


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
        follows=integer(data, "follows"),
        corrected=_corrected(data.get("corrected")),
        waiting=tuple(_tried(each) for each in _dicts(data.get("waiting"))[:MOST_TRIALS]),
    )


def ask(path: Path, index: int, wish: Wish) -> None:
    """Of a loader of the live process that records here. It looks between two windows. Raises
    OSError."""
    write_atomically(path / f"tune{index}.wish", wish)


def asked(path: Path, index: int) -> Wish | None:
    """As the loader's process looks, once."""
    file = path / f"tune{index}.wish"
    try:
        told = file.read_text(encoding="ascii", errors="replace")[:16]
        file.unlink()
    except OSError:
        return None
    return next((each for each in WISHES if each == told), None)


def _tried(data: dict[str, Any]) -> Tried:
    return Tried(
        _settings(data.get("settings")),
        _three(data.get("predicted")),
        _three(data.get("measured")),
        _settings(data.get("base")),
        _rates(data.get("base_rates")),
        _rates(data.get("rates")),
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
    return {
        clean(str(name), 40): each for name, each in value.items() if isinstance(each, bool | int)
    }


def _that_count(settings: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Without workers, what is said of them means nothing; and earlier runs knew of no whole
    batches."""
    of_workers = () if settings.get("num_workers") else OF_WORKERS
    return {
        "batched": False,
        **{name: value for name, value in settings.items() if name not in of_workers},
    }


def _corrected(value: Any) -> tuple[float, float]:
    found = _rates(value)
    return (
        (found[0], found[1])
        if len(found) == 2 and all(0.01 < each < 100 for each in found)
        else (1.0, 1.0)
    )


def _rates(value: Any) -> tuple[float, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(
        float(each) for each in value if isinstance(each, int | float) and 0 < each < float("inf")
    )


def _three(value: Any) -> Three | None:
    if not isinstance(value, list) or len(value) != 3:
        return None
    low, mid, high = (
        each if isinstance(each, int | float) and not isinstance(each, bool) else 0.0
        for each in value
    )
    return (float(low), float(mid), float(high)) if 0 < low <= mid <= high < float("inf") else None
