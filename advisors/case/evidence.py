"""Figures several rules judge by: how busy workers are, what a batch costs to make and to hand
over, who uses the CPUs.

All are read off one case. None means that it was not measured.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...profiler.store.lanes.columns import Columns
from ..stage_model.measured import mean
from ..whatif.costs import method_of
from .case import Case
from .fetching import fetch_idle_share

# Workers at work for more than this part of the time count as always busy: what is left is
# scheduling.
ALWAYS_BUSY = 0.9
# p95/p50 of fetch above this is variance worth absorbing: docs/causes.md, "One slow batch holds up
# others".
SPREAD = 3.0
# One slow batch in fifty is seen by p99 only; then it must be slower still to matter.
TAIL = 6.0
# docs/causes.md, "Thresholds of other tools": loadtune.
SATURATED = 0.85
# A machine this busy has no free core most of the time: other programs count too.
BUSY = 0.9
# Below this CPU over wall time, fetching mostly waits (I/O, locks): workers may then exceed the
# CPUs (docs/causes.md, "Remote storage").
LATENCY_BOUND_BELOW = 0.5

Floats = npt.NDArray[np.float64]


def making_us(case: Case) -> float | None:
    """Fetch and collate, mean wall time a batch in µs."""
    fetch = case.mean_us("fetch")
    return fetch + (case.mean_us("collate") or 0.0) if fetch is not None else None


def hand_over_us(case: Case) -> float | None:
    """Pack and unpack, mean a batch in µs: what a worker's batch costs on top of being made."""
    pack = case.mean_us("pack")
    return pack + (case.mean_us("unpack") or 0.0) if pack is not None else None


def cpu_over_wall(case: Case) -> float | None:
    """CPU over wall time of fetch, as if a core were always at hand: 1 is computing, 0 is waiting
    for I/O or locks."""
    idle = fetch_idle_share(case)
    return 1 - idle if idle is not None else None


def workers_busy(case: Case) -> float | None:
    """Part of the time a worker is fetching, collating or packing, mean over the workers."""
    shares = [case.share(stage) for stage in ("fetch", "collate", "pack")]
    if not case.num_workers or shares[0] is None:
        return None
    return min(1.0, sum(share or 0.0 for share in shares) / case.num_workers)


def spread(case: Case) -> float | None:
    """How uneven fetching is: p95/p50, or half of p99/p50 where a rarer slow batch tells more (TAIL
    against SPREAD)."""
    fetch = case.report.stages.get("fetch")
    if fetch is None or not fetch.p50_us or fetch.p95_us is None or fetch.p99_us is None:
        return None
    return max(fetch.p95_us, fetch.p99_us * SPREAD / TAIL) / fetch.p50_us


def slow_batches(case: Case) -> bool:
    """Whether fetching is uneven (SPREAD), and slow batches take longer than a step of the loop:
    only then do they hold it up."""
    uneven, fetch = spread(case), case.report.stages.get("fetch")
    step_us = (case.mean_us("wait") or 0.0) + (case.mean_us("compute") or 0.0)
    if uneven is None or fetch is None or uneven <= SPREAD:
        return False
    return (fetch.p99_us or 0.0) > step_us


def tensors(case: Case) -> float | None:
    """Tensors a batch, mean."""
    return mean(case.loader.batches["tensors"])


def pickled_bytes(case: Case) -> float | None:
    """Bytes a batch that crossed the pipe, mean: tensor data in shared memory is not among them."""
    return mean(case.loader.batches["pickled_bytes"])


def start_method(case: Case) -> str:
    """How workers are started: as configured, or by the recording Python's default on Linux."""
    return method_of(
        case.config.get("start_method") or case.process.start_method, case.process.python
    )


def torch_version(case: Case) -> tuple[int, int] | None:
    """(major, minor) of the recording torch."""
    match = re.match(r"(\d{1,4})\.(\d{1,4})", case.process.torch or "")
    return (int(match[1]), int(match[2])) if match else None


def batches_a_pass(case: Case) -> float | None:
    """Batches handed over a call of `iter(loader)`."""
    rows = case.loader.epochs.rows
    return case.loader.count / rows if rows else None


def rebuilt(case: Case) -> bool:
    """Whether this loader was another object in (nearly) every pass: what an object keeps is lost
    then."""
    rows = case.loader.epochs.rows
    instances = case.loader.epochs["instance"]
    return rows > 1 and len(np.unique(instances[instances >= 0])) >= 0.8 * rows


@dataclass(frozen=True)
class Cores:
    """CPU use in cores, over the time in which workers worked: all workers together, the mean
    worker, main."""

    workers: float
    worker: float
    main: float
    system_share: float | None  # of all CPU time of the machine, spent in the kernel
    busy_share: float | None  # of the machine's CPU time


def cores(case: Case) -> Cores | None:
    """None without a sampler, or where no worker was sampled twice after its first batch."""
    if case.host is None:
        return None
    process = case.host.process
    began = int(case.loader.batches["t_ns"][0]) if case.loader.batches.rows else 0
    total_ns, span = 0.0, 0.0
    spans: list[tuple[int, int]] = []
    for rows in worker_rows(case, process):
        rate = _cpu_ns(process, rows, began)
        if rate is not None:
            total_ns += rate[0]
            span += rate[2] - rate[1]
            spans.append((rate[1], rate[2]))
    if not spans or span <= 0:
        return None
    begin, end = min(s[0] for s in spans), max(s[1] for s in spans)
    main = _cpu_ns(
        process,
        np.flatnonzero((process["pid"] == case.process.pid) & (process["role"] == 0)),
        begin,
    )
    machine = case.host.machine
    when = (machine["t_ns"] >= begin) & (machine["t_ns"] <= end)
    return Cores(
        workers=total_ns / (end - begin),
        worker=total_ns / span,
        main=main[0] / (main[2] - main[1]) if main is not None else 0.0,
        system_share=_share(machine.floats("cpu_system_pct")[when]),
        busy_share=_busy(machine, when),
    )


def saturated(case: Case) -> bool:
    """Whether this rank's processes use (nearly) all CPUs they may use, or the container was held
    back."""
    throttled = case.system.throttled_share
    if throttled is not None and throttled > 0.05:  # the quota held it back
        return True
    used = cores(case)
    return (
        used is not None
        and case.cpus is not None
        and used.workers + used.main >= SATURATED * case.cpus
    )


def contended(case: Case) -> bool:
    """Whether work waits for free CPUs, whoever uses them: waiting that is no latency, and that
    workers do not hide."""
    busy = case.system.cpu_busy_mean_share
    return saturated(case) or (busy is not None and busy >= BUSY)


def over_budget(case: Case) -> bool:
    """Whether there are more workers than CPUs, and the CPUs are all in use."""
    return case.cpus is not None and case.num_workers > math.ceil(case.cpus) and saturated(case)


def worker_rows(case: Case, process: Columns) -> list[npt.NDArray[np.intp]]:
    """Rows of each worker of this loader in the process lane, in order of time, one array a worker
    process."""
    mine = np.flatnonzero((process["role"] == 1) & (process["owner_pid"] == case.process.pid))
    mine = mine[(process["loader"][mine] == case.loader.index) | (process["loader"][mine] < 0)]
    pids = process["pid"][mine]
    return [mine[pids == pid] for pid in np.unique(pids)]


def _cpu_ns(
    process: Columns, rows: npt.NDArray[np.intp], since_ns: int
) -> tuple[float, int, int] | None:
    """(CPU time used, from, to) between the first and the last sample after `since_ns`."""
    rows = rows[(process["cpu_user_ns"][rows] >= 0) & (process["t_ns"][rows] >= since_ns)]
    if len(rows) < 2:
        return None
    first, last = rows[0], rows[-1]
    used = sum(
        float(process[name][last]) - float(process[name][first])
        for name in ("cpu_user_ns", "cpu_system_ns")
    )
    begin, end = int(process["t_ns"][first]), int(process["t_ns"][last])
    return (max(0.0, used), begin, end) if end > begin else None


def _share(values: Floats) -> float | None:
    values = values[np.isfinite(values)]
    return float(values.mean()) / 100 if len(values) else None


def _busy(machine: Columns, when: npt.NDArray[np.bool_]) -> float | None:
    idle = _share(machine.floats("cpu_idle_pct")[when])
    return 1 - idle if idle is not None else None
