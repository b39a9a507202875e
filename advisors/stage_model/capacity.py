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

_NONE = Stage(0, None, None, None, None, None, None)


def capacities(
    loader: LoaderRun, stages: Mapping[str, Stage], cpus: float | None
) -> tuple[dict[str, Capacity], str | None]:
    """Batches per second by stage, in the order of the pipeline, and the name of the stage with the
    least.

    Fetching and collating is "workers" if there are workers (all of them together), else
    "fetch+collate". `cpus` is effective cores, None if unknown. A stage that was not measured has
    no figure, and `how` says why; the name is None if no stage has one.
    """
    in_main, workers = "in the training process", loader.num_workers
    one_by_one = f"{in_main}, one batch after another"
    pinning = workers and stages.get("pin", _NONE).count
    background = "by the pin thread" if pinning else in_main
    found = {"index": _one_by_one(stages, "index", one_by_one)}
    if workers:
        many = "1 worker" if workers == 1 else f"{workers} workers"
        found["workers"] = _making(loader, stages, f"fetch and collate by {many}", cpus)
        how = f"by {many}, each in parallel with its next batch"
        found["pack"] = _one_by_one(stages, "pack", how, workers)
        found["unpack"] = _one_by_one(stages, "unpack", background)
    else:
        found["fetch+collate"] = _making(loader, stages, one_by_one, None)
    found["pin"] = _one_by_one(stages, "pin", background)
    found["h2d"] = _one_by_one(stages, "h2d", "copies to the device, one after another")
    found["compute"] = _compute(loader, stages)
    known = {name: c.batches_per_s for name, c in found.items() if c.batches_per_s is not None}
    return found, min(known, key=lambda name: known[name], default=None)


def _one_by_one(stages: Mapping[str, Stage], name: str, how: str, at_once: int = 1) -> Capacity:
    stage = stages.get(name, _NONE)
    if stage.mean_us is None:
        return Capacity(None, stage.reason or "not measured")
    return _capacity(stage.mean_us, how, at_once)


def _capacity(
    us: float, how: str, at_once: float = 1, nothing: str = "takes no measurable time"
) -> Capacity:
    return Capacity(at_once * 1e6 / us, how) if us > 0 else Capacity(None, nothing)


def _making(
    loader: LoaderRun, stages: Mapping[str, Stage], how: str, cpus: float | None
) -> Capacity:
    """Fetching and collating, by all workers or in main; CPU time limits them where CPUs do."""
    fetch, collate = (stages.get(name, _NONE).mean_us for name in ("fetch", "collate"))
    if fetch is None:
        return _one_by_one(stages, "fetch", how)
    wall, cpu = fetch + (collate or 0.0), None
    of_fetch, of_collate = cpu_shares(loader)
    if of_fetch is not None:
        cpu = fetch * of_fetch + (collate or 0.0) * (1.0 if of_collate is None else of_collate)
    workers = max(1, loader.num_workers)
    if cpu and cpus and cpus / cpu < workers / max(wall, 1e-9):
        return _capacity(cpu, f"{how}, limited by {cpus:g} CPUs", cpus)
    doing = "CPU time not measured"
    if cpu is not None and wall > 0:
        share = min(1.0, cpu / wall)
        kind = "waiting" if share < WAITING_BELOW else "computing"
        doing = f"{kind} ({share * 100:.0f} % of the time on a CPU)"
    return _capacity(wall, f"{how}, {doing}", workers)


def _compute(loader: LoaderRun, stages: Mapping[str, Stage]) -> Capacity:
    """The loop without waiting: on a device, what of `wait` it did not feel belongs to its
    computing."""
    host = stages.get("compute", _NONE).mean_us
    if host is None:
        return _one_by_one(stages, "compute", "")
    how = "the loop without loading"
    if loader.batches.measured("stall_ns"):
        wait, stall = (stages.get(name, _NONE).mean_us or 0.0 for name in ("wait", "stall"))
        host, how = host + max(0.0, wait - stall), "the device without stalls"
    return _capacity(host, how, nothing="the loop does nothing")
