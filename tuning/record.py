"""What tuning did: `tune{LOADER}.json` in the run directory, read by `profiler.store.run.tuning`.

It has predictions and outcomes, and when which settings began to make batches.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ..advisors.schema.report_model import Range
from ..profiler.base.atomic_write import write_atomically
from ..profiler.base.clock import now_ns
from ..profiler.record.iterate.watch import loader_place
from ..profiler.store.rundir import FORMAT
from .evidence.settings import Settings
from .trial import Trial

MOST_SWITCHES = 1000  # of more, the latest


class Record:
    """Of one loader. Files that cannot be written are ignored."""

    def __init__(self) -> None:
        self.switches: list[dict[str, Any]] = []
        # Of the loader, once something was written: the process's folder, its number there.
        self.place: tuple[Path, int] | None = None

    def switched(self, epoch: int, batch: int, settings: Settings) -> None:
        """These settings make the batches from this one of the epoch on."""
        self.switches.append(
            {"t_ns": now_ns(), "epoch": epoch, "batch": batch, "settings": settings}
        )
        del self.switches[:-MOST_SWITCHES]

    def write(self, loader: Any, trials: Any, waiting: list[Trial], **facts: Any) -> None:
        """Write all that is known so far. `waiting`: trials to come."""
        place = loader_place(loader) if loader is not None else None
        if place is None:
            return
        self.place = place
        waits = [trial_facts(each) for each in waiting]
        facts |= {
            "format": FORMAT,
            "trials": trials,
            "waiting": waits,
            "switches": self.switches,
        }
        with suppress(OSError):
            text = msgspec.json.encode(facts).decode()
            write_atomically(place[0] / f"tune{place[1]}.json", text)


def trial_facts(trial: Trial) -> dict[str, Any]:
    """A trial as it is stored."""
    return {
        "base": trial.base,
        "settings": trial.candidate,
        "predicted": _ends(trial.predicted),
        "measured": _ends(trial.measured),
        "outcome": trial.outcome,
        "why": trial.why,
        "seconds": round(trial.seconds, 3),
        "base_rates": [round(each, 4) for each in trial.rates[trial.base]],
        "rates": [round(each, 4) for each in trial.rates[trial.candidate]],
    }


def _ends(found: Range | None) -> list[float] | None:
    return None if found is None else [found.low, found.mid, found.high]
