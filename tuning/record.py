"""What tuning did: `tune{LOADER}.json` in the run directory, read by `profiler.store.run.tuning`.

It has predictions and outcomes, and when which settings began to make batches.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from ..advisors.schema.report_model import Range
from ..profiler.base.atomic_write import write_atomically
from ..profiler.base.clock import now_ns
from ..profiler.base.tolerant import as_json
from ..profiler.record.iterate.watch import loader_place
from ..profiler.store.run.tuning import MOST_SWITCHES, Switch, Tried, Tuned
from ..profiler.store.rundir import FORMAT
from .evidence.settings import Settings
from .trial import Trial


class Record:
    """Of one loader. Files that cannot be written are ignored."""

    def __init__(self) -> None:
        self.switches: list[Switch] = []  # the latest
        # Of the loader, once something was written: the process's folder, its number there.
        self.place: tuple[Path, int] | None = None

    def switched(self, epoch: int, batch: int, settings: Settings) -> None:
        """These settings make the batches from this one of the epoch on."""
        self.switches.append(Switch(now_ns(), epoch, batch, asdict(settings)))
        del self.switches[:-MOST_SWITCHES]

    def write(self, loader: Any, **facts: Any) -> None:
        """Write all that is known so far: the fields of `Tuned`, but for the switches."""
        place = loader_place(loader)
        if place is None:
            return
        self.place = place
        tuned = Tuned(**facts, switches=tuple(self.switches))
        with suppress(OSError):
            text = json.dumps({"format": FORMAT, **as_json(tuned)})
            write_atomically(place[0] / f"tune{place[1]}.json", text)


def as_tried(trial: Trial) -> Tried:
    """A trial as it is stored."""
    return Tried(
        settings=asdict(trial.candidate),
        predicted=_ends(trial.predicted),
        measured=_ends(trial.measured),
        base=asdict(trial.base),
        base_rates=tuple(round(each, 4) for each in trial.rates[trial.base]),
        rates=tuple(round(each, 4) for each in trial.rates[trial.candidate]),
        outcome=trial.outcome,
        why=trial.why,
        seconds=round(trial.seconds, 3),
    )


def _ends(found: Range | None) -> tuple[float, float, float] | None:
    return None if found is None else (found.low, found.mid, found.high)
