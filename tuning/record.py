"""What tuning did, in the run directory: `tune{LOADER}.json` of a process, read by
`profiler.store.run.tuning`.

Predictions and outcomes together, and when which settings began to make batches.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..advisors.schema.report_model import Range
from ..profiler.base.atomic_write import write_atomically
from ..profiler.base.clock import now_ns
from ..profiler.record.iterate.watch import loader_place
from ..profiler.store.rundir import FORMAT
from .settings import Settings
from .trial import Trial

MOST_SWITCHES = 1000  # of more, the latest


class Record:
    """Of one loader. Nothing here raises an OSError: what cannot be written is not kept."""

    def __init__(self) -> None:
        self._switches: list[dict[str, Any]] = []
        self.place: tuple[Path, int] | None = (
            None  # of the loader: the process's folder, and its number there
        )

    def switched(self, epoch: int, batch: int, settings: Settings) -> None:
        """From this batch of the epoch on."""
        self._switches.append(
            {"t_ns": now_ns(), "epoch": epoch, "batch": batch, "settings": asdict(settings)}
        )
        del self._switches[:-MOST_SWITCHES]

    def write(
        self,
        loader: Any,
        own: Settings,
        chosen: Settings,
        decided: bool,
        said: str,
        trials: list[dict[str, Any]],
        follows: int | None,
        waiting: list[dict[str, Any]],
    ) -> None:
        """All that is known so far. `waiting`: to be tried next; `follows`: the rank that decided,
        and whose trials these are."""
        place = loader_place(loader) if loader is not None else None
        if place is None:
            return
        self.place = place
        facts = {
            "format": FORMAT,
            "own": asdict(own),
            "chosen": asdict(chosen),
            "decided": decided,
            "said": said,
            "trials": trials,
            "waiting": waiting,
            "follows": follows,
            "switches": self._switches,
        }
        with suppress(OSError):
            write_atomically(place[0] / f"tune{place[1]}.json", json.dumps(facts))


def trial_facts(trial: Trial) -> dict[str, Any]:
    """A trial, as it is kept."""
    return {
        "base": asdict(trial.base),
        "settings": asdict(trial.candidate),
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
