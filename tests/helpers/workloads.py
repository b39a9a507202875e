"""Loops whose speed can be worked out by hand, as the what-if model reads them."""

from pathlib import Path
from typing import Any

from builders import MS, T0, loop, opened
from loaderscope.advisors.whatif import Workload, workload_of

Rows = list[dict[str, Any]]


def workload(folder: Path, *lanes: Rows, samples: Rows | None = None, **facts: Any) -> Workload:
    """The workload of a loader of these facts; `samples` are of the sampler's process lane."""
    system = {"machine": [{"t_ns": T0}], "process": samples}
    run = opened(folder, *lanes, system=system if samples else None, **facts)
    return workload_of(run, run.processes[0], run.loaders[0])


def alone(
    fetch_ms: float, cpu_ms: float, compute_ms: float, batches: int = 400, **columns: Any
) -> Rows:
    """Rows of a loop without workers."""
    made = {"fetch_ns": round(fetch_ms * MS), "fetch_cpu_ns": round(cpu_ms * MS), "bytes": 1000}
    nothing = dict.fromkeys(("index_ns", "collate_ns", "collate_cpu_ns"), 0)
    columns = {**nothing, **made, "tensors": 1, **columns}
    return loop(batches, fetch_ms + 0.01, compute_ms, **columns)


def starved(workers, fetch_ms, cpu_ms, compute_ms, batches=400, **columns: Any) -> Rows:
    """Rows of a loop that always waits for workers which are always busy."""
    step = columns.pop("step_ms", max(fetch_ms / workers, compute_ms + 0.1))
    sent = {"pack_ns": MS // 10, "queued_ns": MS // 20, "unpack_ns": MS // 50, "pickled_bytes": 100}
    made: dict[str, Any] = {
        "task": lambda n, t, w: n,
        "worker": lambda n, t, w: n % workers,
        "t_fetch_ns": lambda n, t, w: t + w - round((fetch_ms + 0.2) * MS),
    }
    wait = step - compute_ms - 0.01  # `alone` adds it
    made |= {"first_wait_ms": fetch_ms, "fetch_ns": round(fetch_ms * MS), **sent, **columns}
    return alone(wait, cpu_ms, compute_ms, batches, **made)


def with_workers(workers: int, **config: Any) -> dict[str, Any]:
    return {"num_workers": workers, "prefetch_factor": 2, "persistent_workers": True, **config}
