"""Many runs as one table, a row a loader and run, for DuckDB, Polars or a spreadsheet to answer a
team's questions."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ...advisors.schema.report_model import LoaderReport, Report
from ...profiler.store.run.run_list import RunEntry
from ..words.loaders import slowest_place

# Fields that a row has under the same name.
_OF_THE_RUN = ("host", "torch", "python", "loaderscope")
_OF_THE_LOADER = (
    "batches",
    "samples",
    "epochs",
    "wall_s",
    "batches_per_s",
    "samples_per_s",
    "verdict",
)
_OF_THE_CONFIG = {
    "phase": str,
    "place": str,
    "variable": str,
    "framework": str,
    "dataset": str,
    "batch_size": int,
    "num_workers": int,
}


@dataclass(frozen=True)
class FleetRow:
    """One loader of one run; of a run without one, or that cannot be read, what is known of the
    run.

    `lost_share` is the part of the loop's time that loading cost, epoch starts included.
    `lost_loop_hours` is that of all its ranks together, `lost_gpu_hours` the same where they
    trained on a device. `predicted_*` are the factors on batches a second that the first advice
    promises.
    """

    run: str
    path: str
    state: str
    created_unix_ns: int | None
    command: str
    problem: str | None = None
    host: str | None = None
    torch: str | None = None
    python: str | None = None
    loaderscope: str | None = None
    device: str | None = None
    loader: str | None = None
    phase: str | None = None
    place: str | None = None
    variable: str | None = None
    framework: str | None = None
    dataset: str | None = None
    batch_size: int | None = None
    num_workers: int | None = None
    ranks: int | None = None
    hosts: int | None = None
    batches: int | None = None
    samples: int | None = None
    epochs: int | None = None
    wall_s: float | None = None
    batches_per_s: float | None = None
    samples_per_s: float | None = None
    verdict: str | None = None
    confidence: str | None = None
    wait_share: float | None = None
    lost_share: float | None = None
    lost_loop_hours: float | None = None
    lost_gpu_hours: float | None = None
    first_rule: str | None = None
    first_advice: str | None = None
    predicted_low: float | None = None
    predicted_mid: float | None = None
    predicted_high: float | None = None
    slowest_rank: int | None = None
    slowest_cause: str | None = None
    slowest_place: str | None = None


def fleet_rows(entry: RunEntry, report: Report | str) -> Iterator[FleetRow]:
    """The rows of one run; instead of its report, why it has none."""
    known: dict[str, Any] = {
        "run": entry.id,
        "path": os.fsencode(entry.path).decode(errors="replace"),
        "state": entry.state,
        "created_unix_ns": entry.created_unix_ns,
        "command": shlex.join(entry.argv),
    }
    if isinstance(report, str):
        yield FleetRow(**known, problem=report)
        return
    known |= {name: getattr(report.run, name) for name in _OF_THE_RUN}
    known |= {"device": ", ".join(report.run.devices) or None, "ranks": report.run.world_size}
    for loader in report.loaders:
        yield FleetRow(**{**known, **_loader(loader, bool(report.run.devices))})
    if not report.loaders:
        yield FleetRow(**known)


def _loader(loader: LoaderReport, device: bool) -> dict[str, Any]:
    config = ((name, loader.config.get(name), kind) for name, kind in _OF_THE_CONFIG.items())
    share = loader.lost_share if loader.verdict != "too-short" else None
    hours = _lost_hours(loader, share)
    found: dict[str, Any] = {
        **{name: value for name, value, kind in config if type(value) is kind},
        **{name: getattr(loader, name) for name in _OF_THE_LOADER},
        "loader": loader.name,
        "ranks": 1,
        "hosts": 1,
        "confidence": loader.basis.confidence,
        "wait_share": loader.basis.stall_share,
        "lost_share": share,
        "lost_loop_hours": hours,
        "lost_gpu_hours": hours if device else None,
    }
    if loader.recommendations:
        first = loader.recommendations[0]
        found |= {"first_rule": first.rule, "first_advice": first.title}
        found |= {f"predicted_{name}": value for name, value in asdict(first.predicted).items()}
    if loader.ranks:
        found |= {"ranks": len(loader.ranks.each), "hosts": loader.ranks.hosts}
        slowest = loader.ranks.slowest
        if slowest:
            found |= {"slowest_rank": slowest.rank, "slowest_cause": slowest.cause}
            found |= {"slowest_place": slowest_place(slowest) or None}
    return found


def _lost_hours(loader: LoaderReport, share: float | None) -> float | None:
    """Of all ranks: those that step together lose what the slowest does, others what each waits
    itself."""
    if share is None or loader.wall_s is None:
        return None
    own = share * loader.wall_s / 3600
    if not loader.ranks:
        return own
    slowest = loader.ranks.slowest
    if not slowest or slowest.held_up:
        return own * len(loader.ranks.each)
    waits = (
        each.mean_us.get("stall", each.mean_us.get("wait", 0.0)) * each.batches
        for each in loader.ranks.each
    )
    return sum(waits) / 3.6e9
