"""What each stage could sustain if it alone were the limit, and which has the least: where the
pipeline is narrow."""

from __future__ import annotations

from collections.abc import Mapping

from ...profiler.store.run.run import LoaderRun, ProcessRun, Run
from ..schema.report_model import Capacity, Stage
from .stages import cpu_share

# Below this share of CPU in its wall time, a stage is told as waiting rather than computing
# (docs/causes.md).
WAITING_BELOW = 0.3


def capacities(
    run: Run,
    process: ProcessRun,
    loader: LoaderRun,
    stages: Mapping[str, Stage],
    cpus: float | None,
) -> tuple[dict[str, Capacity], str | None]:
    """Batches a second by stage, in the order of the pipeline, and the name of the stage with the
    least.

    Fetching and collating is "workers" where there are workers (all of them together), else
    "fetch+collate". `cpus` is effective cores, None if unknown. A stage that was not measured has
    no figure, and `how` says why; the name is None where no stage has one.
    """
    workers = loader.num_workers
    background = (
        "by the pin thread"
        if workers and _mean_us(stages, "pin") is not None
        else "in the training process"
    )
    found = {
        "index": _one_by_one(stages, "index", "in the training process, one batch after another")
    }
    if workers:
        found["workers"] = _workers(loader, stages, workers, cpus)
        how = f"by {_count(workers)}, each beside its next batch"
        found["pack"] = _times(_one_by_one(stages, "pack", how), workers)
        found["unpack"] = _one_by_one(stages, "unpack", background)
    else:
        found["fetch+collate"] = _in_main(loader, stages)
    found["pin"] = _one_by_one(stages, "pin", background)
    found["h2d"] = _one_by_one(stages, "h2d", "copies to the device, one after another")
    found["compute"] = _compute(loader, stages)
    known = {name: c.batches_per_s for name, c in found.items() if c.batches_per_s is not None}
    return found, min(known, key=lambda name: known[name]) if known else None


def _mean_us(stages: Mapping[str, Stage], name: str) -> float | None:
    stage = stages.get(name)
    return stage.mean_us if stage is not None else None


def _one_by_one(stages: Mapping[str, Stage], name: str, how: str) -> Capacity:
    mean = _mean_us(stages, name)
    if mean is None:
        stage = stages.get(name)
        return Capacity(None, (stage.reason if stage is not None else None) or "not measured")
    return Capacity(1e6 / mean, how) if mean > 0 else Capacity(None, "takes no measurable time")


def _times(one: Capacity, workers: int) -> Capacity:
    return one if one.batches_per_s is None else Capacity(one.batches_per_s * workers, one.how)


def _work(stages: Mapping[str, Stage]) -> float | None:
    """Fetch and collate together, µs a batch."""
    fetch = _mean_us(stages, "fetch")
    return None if fetch is None else fetch + (_mean_us(stages, "collate") or 0.0)


def _work_cpu(loader: LoaderRun, stages: Mapping[str, Stage]) -> float | None:
    """The CPU time of fetch and collate, µs a batch."""
    share = cpu_share(loader.batches["fetch_ns"], loader.batches["fetch_cpu_ns"])
    fetch = _mean_us(stages, "fetch")
    if share is None or fetch is None:
        return None
    collate = cpu_share(loader.batches["collate_ns"], loader.batches["collate_cpu_ns"])
    return fetch * share + (_mean_us(stages, "collate") or 0.0) * (
        1.0 if collate is None else collate
    )


def _workers(
    loader: LoaderRun, stages: Mapping[str, Stage], workers: int, cpus: float | None
) -> Capacity:
    wall, cpu = _work(stages), _work_cpu(loader, stages)
    if wall is None:
        return _one_by_one(stages, "fetch", "")
    if wall <= 0:
        return Capacity(None, "takes no measurable time")
    by_workers = workers * 1e6 / wall
    if cpu and cpus and cpus * 1e6 / cpu < by_workers:
        return Capacity(
            cpus * 1e6 / cpu, f"fetch and collate by {_count(workers)}, limited by {cpus:g} CPUs"
        )
    return Capacity(by_workers, f"fetch and collate by {_count(workers)}, {_doing(cpu, wall)}")


def _in_main(loader: LoaderRun, stages: Mapping[str, Stage]) -> Capacity:
    wall = _work(stages)
    if wall is None:
        return _one_by_one(stages, "fetch", "")
    if wall <= 0:
        return Capacity(None, "takes no measurable time")
    doing = _doing(_work_cpu(loader, stages), wall)
    return Capacity(1e6 / wall, f"in the training process, one batch after another, {doing}")


def _doing(cpu: float | None, wall: float) -> str:
    if cpu is None:
        return "CPU time not measured"
    share = min(1.0, cpu / wall)
    return (
        f"{'waiting' if share < WAITING_BELOW else 'computing'} ({share * 100:.0f} % of the time "
        "on a CPU)"
    )


def _count(workers: int) -> str:
    return "1 worker" if workers == 1 else f"{workers} workers"


def _compute(loader: LoaderRun, stages: Mapping[str, Stage]) -> Capacity:
    """The loop without waiting: on a device, what of `wait` it did not feel belongs to its
    computing."""
    host = _mean_us(stages, "compute")
    if host is None:
        return _one_by_one(stages, "compute", "")
    if not bool((loader.batches["stall_ns"] >= 0).any()):
        return (
            Capacity(1e6 / host, "the loop without loading")
            if host > 0
            else Capacity(None, "the loop does nothing")
        )
    wait, stall = _mean_us(stages, "wait") or 0.0, _mean_us(stages, "stall") or 0.0
    busy = host + max(0.0, wait - stall)
    return (
        Capacity(1e6 / busy, "the device without stalls")
        if busy > 0
        else Capacity(None, "the loop does nothing")
    )
