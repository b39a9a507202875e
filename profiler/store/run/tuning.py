"""What tuning did with a loader, as its process wrote it down: `tune{LOADER}.json`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, get_args

import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from ...base.arrays import Ints, Mask
from ...base.atomic_write import write_atomically
from ...base.errors import RunUnreadable
from ...base.metadata import Scalar, Scalars
from ...base.tolerant import Text, read_as
from ...base.torch_parts import DEFAULT_PREFETCH

MOST_TRIALS, MOST_SWITCHES = 64, 1000
OF_WORKERS = ("prefetch_factor", "persistent_workers", "in_order")
# What a dashboard asks a tuned loader for: to keep what is tried now, to put the code's settings
# back, to try no more.
TuneCommand = Literal["keep", "back", "stop"]
COMMANDS: tuple[TuneCommand, ...] = get_args(TuneCommand)
Three = tuple[float, float, float]
Settings = Mapping[str, bool | int]
Rates = tuple[Annotated[float, Meta(gt=0)], ...]


class Tried(Struct, frozen=True):
    """One trial. `measured` and `predicted` are (low, mid, high) factors over the loader's own
    settings."""

    settings: Settings = {}
    predicted: Three | None = None
    measured: Three | None = None
    base: Settings = {}  # what took turns with it
    base_rates: Rates = ()  # batches a second, a window
    rates: Rates = ()
    # proven, not faster, undecided, failed, not tried; None: the loop ended before
    outcome: Text | None = None
    why: Text | None = None
    seconds: float = 0.0

    def __post_init__(self) -> None:
        for name in ("predicted", "measured"):
            three = getattr(self, name)
            if three is not None and not 0 < three[0] <= three[1] <= three[2]:
                force_setattr(self, name, None)


class Switch(Struct, frozen=True):
    """From this batch of the epoch on, batches were made with these settings."""

    t_ns: int = 0
    epoch: int = 0
    batch: int = 0
    settings: Settings = {}


Trials = Annotated[tuple[Tried, ...], Meta(max_length=MOST_TRIALS)]


class Tuned(Struct, frozen=True):
    """Of one loader: the settings of its code, those in use at the end, and how it came to that."""

    own: Settings = {}
    chosen: Settings = {}
    decided: bool = False
    said: str = ""
    trials: Trials = ()
    switches: Annotated[tuple[Switch, ...], Meta(max_length=MOST_SWITCHES)] = ()
    follows: int | None = None  # the rank that decided for this one; the trials are its
    waiting: Trials = ()  # to be tried next

    def trial_of(self, changes: Scalars) -> Tried | None:
        """The trial of just these changes to the loader's own settings."""
        wanted = _that_count({**self.own, **changes})
        measured = (each for each in self.trials if each.measured is not None)
        return next((each for each in measured if _that_count(each.settings) == wanted), None)

    def as_coded(self, t_ns: Ints) -> Mask:
        """Which of the batches handed over at these times were made with the settings of the
        code."""
        begins = np.array([each.t_ns for each in self.switches], np.int64)
        own = np.array([True, *(each.settings == self.own for each in self.switches)])
        found: Mask = own[np.searchsorted(begins, t_ns, side="right")]
        return found


def changed(own: Scalars, settings: Scalars) -> dict[str, Scalar]:
    """The arguments of these settings to write in place of one's own; what is not said is as torch
    has it."""
    own = {
        "prefetch_factor": DEFAULT_PREFETCH,
        "persistent_workers": False,
        "in_order": True,
        **own,
    }
    return {name: value for name, value in settings.items() if own.get(name) != value}


def changed_words(own: Scalars, settings: Scalars) -> str:
    """The same as one writes it."""
    return ", ".join(f"{name}={value}" for name, value in changed(own, settings).items())


def read_tuning(path: Path, index: int, notes: list[str]) -> Tuned | None:
    """Of a loader of the process that recorded here; None for one that was not tuned."""
    file = path / f"tune{index}.json"
    if not file.is_file():
        return None
    try:
        return read_as(Tuned, file, notes)
    except RunUnreadable as error:
        notes.append(str(error))
        return None


def ask(path: Path, index: int, command: TuneCommand) -> None:
    """Of a loader of the live process that records here. It looks between two windows. Raises
    OSError."""
    write_atomically(path / f"tune{index}.wish", command)


def asked(path: Path, index: int) -> TuneCommand | None:
    """As the loader's process looks, once."""
    file = path / f"tune{index}.wish"
    try:
        found = file.read_text(encoding="ascii", errors="replace")[:16]
        file.unlink()
    except OSError:
        return None
    return next((each for each in COMMANDS if each == found), None)


def _that_count(settings: Scalars) -> dict[str, Scalar]:
    """Without workers, what is said of them means nothing."""
    of_workers = () if settings.get("num_workers") else OF_WORKERS
    return {name: value for name, value in settings.items() if name not in of_workers}
