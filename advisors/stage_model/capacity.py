"""What each stage could sustain if it alone were the limit, and which has the least: where the
pipeline is narrow."""

from __future__ import annotations

from collections.abc import Mapping

from ...profiler.store.run.run import LoaderRun
from ..schema.report_model import Capacity, Stage
from .stages import cpu_shares

# Below this share of CPU in its wall time, a stage is said to wait rather than to compute
# (docs/causes.md).
WAITING_BELOW = 0.3


def capacities(
    loader: LoaderRun, stages: Mapping[str, Stage], cpus: float | None
) -> tuple[dict[str, Capacity], str | None]:
    """Batches per second by stage, in the order of the pipeline, and the name of the stage with the
    least.

    Fetching and collating is "workers" if there are workers (all of them together), else
    "fetch+collate". `cpus` is effective cores, None if unknown. A stage that was not measured has
    no figure, and `how` says why; the name is None if no stage has one.
    """
    workers, in_main = loader.num_workers, "in the training process"
    one_by_one = f"{in_main}, one batch after another"
    background = "by the pin thread" if workers and stages["pin"].count else in_main
    found = {"index": _capacity(stages["index"], one_by_one)}
    if workers:
        many = "1 worker" if workers == 1 else f"{workers} workers"
        found["workers"] = _making(loader, stages, f"fetch and collate by {many}", cpus)
        how = f"by {many}, each in parallel with its next batch"
        found["pack"] = _capacity(stages["pack"], how, workers)
        found["unpack"] = _capacity(stages["unpack"], background)
    else:
        found["fetch+collate"] = _making(loader, stages, one_by_one, None)
    found["pin"] = _capacity(stages["pin"], background)
    found["h2d"] = _capacity(stages["h2d"], "copies to the device, one after another")
    found["compute"] = _compute(loader, stages)
    known = {name: c.batches_per_s for name, c in found.items() if c.batches_per_s is not None}
    return found, min(known, key=lambda name: known[name], default=None)


def _capacity(
    stage: Stage,
    how: str,
    at_once: int = 1,
    more_us: float = 0.0,
    nothing: str = "takes no measurable time",
) -> Capacity:
    """Of a stage that takes `more_us` besides, for so many batches at once."""
    if stage.mean_us is None:
        return Capacity(None, stage.reason or "not measured")
    us = stage.mean_us + more_us
    return Capacity(at_once * 1e6 / us, how) if us > 0 else Capacity(None, nothing)


def _making(
    loader: LoaderRun, stages: Mapping[str, Stage], how: str, cpus: float | None
) -> Capacity:
    """Fetching and collating, by all workers or in main; CPU time limits them where CPUs do."""
    fetch, collate = stages["fetch"].mean_us or 0.0, stages["collate"].mean_us or 0.0
    wall, workers, doing = fetch + collate, max(1, loader.num_workers), "CPU time not measured"
    of_fetch, of_collate = cpu_shares(loader)
    if of_fetch is not None and wall > 0:
        cpu = fetch * of_fetch + collate * (1.0 if of_collate is None else of_collate)
        if cpu and cpus and cpus / cpu < workers / wall:
            return Capacity(cpus * 1e6 / cpu, f"{how}, limited by {cpus:g} CPUs")
        share = min(1.0, cpu / wall)
        kind = "waiting" if share < WAITING_BELOW else "computing"
        doing = f"{kind} ({share * 100:.0f} % of the time on a CPU)"
    return _capacity(stages["fetch"], f"{how}, {doing}", workers, collate)


def _compute(loader: LoaderRun, stages: Mapping[str, Stage]) -> Capacity:
    """The loop without waiting: on a device, what of `wait` it did not feel belongs to its
    computing."""
    how, hidden = "the loop without loading", 0.0
    if loader.batches.measured("stall_ns"):
        wait, stall = (stages[name].mean_us or 0.0 for name in ("wait", "stall"))
        how, hidden = "the device without stalls", max(0.0, wait - stall)
    return _capacity(stages["compute"], how, more_us=hidden, nothing="the loop does nothing")
