"""A plan of a loop, simulated: what each batch costs under it, and the time a batch that comes
out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from . import costs
from .changes import Plan
from .simulate import Epoch, Setting, Times, epoch
from .workload import BLOCK_ROWS, Workload

Floats = npt.NDArray[np.float64]

# Times beyond so many medians are held back where workers go, if no more than so many are: see
# typical.
OUTLYING, FEW_OUTLYING = 3.0, 0.2
# Batches a simulation runs over: enough for heavy tails to show, few enough for some ten
# milliseconds.
BATCHES = 720
SEED = 20_250_131
# Of a long epoch, the part set apart as its start: until then the queue fills.
HEAD_SHARE = 0.25
# Blocks for the uncertainty of a ratio (see advisors.stage_model.block_error).
BLOCKS = 16


@dataclass(frozen=True)
class Contention:
    """Of what was measured as idle time, the part that is no waiting for a core: it stays when
    cores are free."""

    fetch: float = 1.0
    compute: float = 1.0


@dataclass(frozen=True)
class Outcome:
    """A simulated loop: ns a batch of whole epochs (`batch_ns`), without their starts (`inner_ns`),
    and block by block (`blocks_ns`, the same batches in every outcome of a workload). `work_ns`,
    `compute_ns` and `receive_ns` (main taking batches from workers, 0 without) are means a
    batch."""

    batch_ns: float
    inner_ns: float
    blocks_ns: Floats
    work_ns: float
    compute_ns: float
    receive_ns: float = 0.0


def drawn_rows(workload: Workload) -> npt.NDArray[np.int64]:
    """The batches every simulation of this workload runs over: blocks spread evenly over the run,
    in random order."""
    rows = workload.rows
    block = min(BLOCK_ROWS, rows)
    number = -(-BATCHES // block)
    starts = np.linspace(0, rows - block, number).astype(np.int64)
    np.random.default_rng(SEED).shuffle(starts)
    found: npt.NDArray[np.int64] = (starts[:, None] + np.arange(block)).ravel()[:BATCHES]
    return found


def own_pack_ns(workload: Workload, rows: npt.NDArray[np.int64]) -> float:
    """What packing keeps a worker from its next task, on average; 0 without workers."""
    w = workload
    most = costs.handover(w.tensors, w.data_bytes, w.pickled_bytes, w.speed).pack_ns
    return float(np.minimum(w.pack_ns[rows], most).mean()) if w.num_workers else 0.0


def run_plan(
    workload: Workload, plan: Plan, rows: npt.NDArray[np.int64], contention: Contention
) -> Outcome:
    """The loop under this plan, over these rows of the workload."""
    times = _times(workload, plan, rows, contention)
    setting = _setting(workload, plan)
    stop = _stop_ns(workload, plan)
    length, count = workload.epoch_batches, len(rows)
    receive = float(np.mean(times.receive)) if plan.num_workers else 0.0
    if length > count:
        found = epoch(times, replace(setting, more_tasks=True), 0, count)
        return replace(_long(found, length, count, stop), receive_ns=receive)
    parts = [
        epoch(times, setting, first, min(length, count - first))
        for first in range(0, count, length)
    ]
    if len(parts) > 1 and len(parts[-1].ends) < length:
        parts.pop()
    return replace(_short(parts, stop), receive_ns=receive)


def _long(found: Epoch, length: int, count: int, stop: float) -> Outcome:
    ends = np.asarray(found.ends)
    head = int(count * HEAD_SHARE)
    inner = float(ends[-1] - ends[head - 1]) / (count - head)
    whole = float(ends[head - 1]) + (length - head) * inner + stop
    edges = np.linspace(head, count, BLOCKS + 1).astype(np.int64) - 1
    return Outcome(
        batch_ns=whole / length,
        inner_ns=inner,
        blocks_ns=np.diff(ends[edges]),
        work_ns=found.work_ns / max(1, found.worked),
        compute_ns=found.compute_ns / count,
    )


def _short(parts: list[Epoch], stop: float) -> Outcome:
    batches = sum(len(part.ends) for part in parts)
    whole = sum(part.ends[-1] + stop for part in parts)
    if len(parts) >= BLOCKS // 2:
        blocks = np.array([part.ends[-1] + stop for part in parts])
    else:
        ends = np.concatenate([np.diff(part.ends, prepend=0.0) for part in parts])
        blocks = np.add.reduceat(
            ends, np.linspace(0, batches, min(BLOCKS, batches) + 1).astype(np.int64)[:-1]
        )
    return Outcome(
        batch_ns=whole / batches,
        inner_ns=(whole - stop * len(parts)) / batches,
        blocks_ns=blocks,
        work_ns=sum(part.work_ns for part in parts) / max(1, sum(part.worked for part in parts)),
        compute_ns=sum(part.compute_ns for part in parts) / batches,
    )


def _times(w: Workload, plan: Plan, rows: npt.NDArray[np.int64], contention: Contention) -> Times:
    f = plan.factor
    index = w.index_ns[rows] * f("index") + plan.constant_ns("index")
    fetch, collate = made_in_main(w, plan, rows)
    work_cpu = fetch * f("fetch") + collate * f("collate")
    work_cpu = work_cpu + plan.constant_ns("fetch") + plan.constant_ns("collate")
    left = _left(work_cpu, w.fetch_cpu_ns[rows] + w.collate_cpu_ns[rows])
    work_idle = (
        w.fetch_idle_ns[rows] * f("fetch") + w.collate_idle_ns[rows] * f("collate")
    ) * contention.fetch
    if not plan.num_workers:  # no feeder thread wants the interpreter any more
        work_idle = work_idle * (
            1.0 - (w.turn_share[rows] if isinstance(w.turn_share, np.ndarray) else w.turn_share)
        )
    warm = _warm(w, plan, rows, float((work_cpu + work_idle).mean()))
    if "index" not in plan.factors:
        index = warmed(index, w.cold_lines_ns * warm, costs.WARM_INDEX)
        if w.num_workers and not plan.num_workers:
            index = warmed(index, costs.AWAKE_NS * w.speed, costs.AWAKE_INDEX)
    if "fetch" not in plan.factors:
        work_cpu = work_cpu - fetch + warmed(fetch, w.cold_lines_ns * warm, costs.WARM_FETCH)
    model = costs.handover(w.tensors, w.data_bytes, w.pickled_bytes, w.speed)
    transfer = f("transfer")
    zeros = np.zeros(len(rows))
    pin = zeros
    if plan.pin_memory:
        pin = (w.pin_ns[rows] if w.pin_memory and w.pin_ns.any() else zeros + model.pin_ns) * f(
            "pin"
        )
    if not plan.num_workers:
        other = costs.SINGLE_OTHER_NS * w.speed
        if not w.num_workers:  # measured, between steps as long as they were
            other = min(w.receive_ns, other + w.cold_lines_ns * (1.0 - warm))
        send, unpack, receive = zeros, zeros, index + other
    else:
        pack = w.pack_ns[rows] if w.num_workers else zeros + model.pack_ns
        unpack = w.unpack_ns[rows] if w.num_workers else zeros + model.unpack_ns
        # A feeder thread packs while the worker goes on, but both want the interpreter: what
        # packing needs to compute keeps the worker, what was measured beyond that was waiting for
        # its turn. Unpacking asks a thread of the worker for each tensor, which waits for its turn
        # likewise: with less work in the worker, both wait less.
        own = np.minimum(pack, model.pack_ns)
        send = (pack - own) * left * transfer
        work_cpu = work_cpu + own * transfer
        asked = np.minimum(unpack, model.unpack_ns)
        unpack = (asked + (unpack - asked) * left) * transfer * f("unpack")
        receive = index + (w.receive_ns if w.num_workers else model.receive_ns) * transfer
        if not plan.pin_memory:
            receive = receive + unpack
    compute_cpu, compute_idle = _compute(w, plan, rows, contention)
    if w.on_device is None and not plan.num_workers:
        compute_cpu = warmed(
            compute_cpu, costs.COLD_COMPUTE * w.cold_lines_ns * warm, costs.WARM_COMPUTE
        )
    return Times(
        work_cpu=work_cpu.tolist(),
        work_idle=work_idle.tolist(),
        send=send.tolist(),
        receive=receive.tolist(),
        pin_cpu=(pin + unpack if plan.num_workers and plan.pin_memory else pin).tolist(),
        draw=index.tolist(),
        compute_cpu=compute_cpu.tolist(),
        compute_idle=compute_idle.tolist(),
        **_on_device(w, plan, rows),
    )


def made_in_main(w: Workload, plan: Plan, rows: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """CPU time of fetching and collating; where workers go, without what they take only because
    workers do it. (A new time that was asked for is meant as it is.)"""
    fetch, collate = w.fetch_cpu_ns[rows], w.collate_cpu_ns[rows]
    if plan.num_workers or not w.num_workers:
        return fetch, collate
    if "fetch" not in plan.factors:
        fetch = typical(fetch)
        cold = costs.COLD_FETCH if w.num_workers < w.cpus else costs.CROWDED_COLD_FETCH
        fetch = fetch - np.minimum(fetch * cold, costs.COLD_FETCH_MOST_NS * w.speed)
    if "collate" not in plan.factors:
        collate = typical(collate)
        if w.shares_in_collate:
            shared = costs.SHARED_COLLATE_TENSOR_NS * w.tensors * w.speed
            collate = collate - np.minimum(collate * costs.SHARED_COLLATE_MOST, shared)
    return fetch, collate


def typical(values: Floats) -> Floats:
    """The values with a few that are far beyond the others held back: in a worker, fresh memory and
    other threads make some batches many times as long."""
    most = OUTLYING * float(np.median(values))
    return (
        np.minimum(values, most) if most > 0 and np.mean(values > most) <= FEW_OUTLYING else values
    )


def _warm(w: Workload, plan: Plan, rows: npt.NDArray[np.int64], making_ns: float) -> float:
    """How much less of cold caches there is, from 0 to 1, where batches are made in so much less
    time than they were. Making alone counts: so it is exactly 0 where nothing changes."""
    if plan.num_workers or w.num_workers:
        return 0.0
    made = (
        w.fetch_cpu_ns[rows]
        + w.fetch_idle_ns[rows]
        + w.collate_cpu_ns[rows]
        + w.collate_idle_ns[rows]
    )
    computing = float(w.compute_ns[rows].mean())
    return max(0.0, 1.0 - (making_ns + computing) / max(1.0, float(made.mean()) + computing))


def warmed(values: Floats, cold_ns: float, least: float) -> Floats:
    """Times without so much of what was cold, of which at least a part is left."""
    return np.maximum(values * least, values - cold_ns) if cold_ns > 0 else values


def _left(work: Floats, before: Floats) -> float:
    """How much of the computing in a worker is left, at most all of it."""
    total = float(before.sum())
    return min(1.0, float(work.sum()) / total) if total > 0 else 1.0


def _compute(
    w: Workload, plan: Plan, rows: npt.NDArray[np.int64], contention: Contention
) -> tuple[Floats, Floats]:
    """Main's computing, divided as its CPU time says: all of it CPU where that was not measured. On
    a device that was timed, what main itself does in a step."""
    share = min(1.0, 1.0 if w.compute_cores is None else w.compute_cores)
    if w.on_device is not None:
        calls = w.on_device.call_ns[rows] * (1 - min(1.0, plan.factor("h2d")))
        compute = (w.on_device.issue_ns[rows] - calls) * plan.factor("compute")
        cpu = np.minimum(compute, w.compute_ns[rows] * share)
        return cpu, compute - cpu
    compute = (w.compute_ns[rows] + w.h2d_ns[rows] * (_copying(w, plan) - 1.0)).clip(
        0
    ) * plan.factor("compute")
    kept, more = released(w, plan)
    return compute * kept * share + more, compute * kept * w.compute_idle_share * contention.compute


def released(w: Workload, plan: Plan) -> tuple[float, float]:
    """What letting go of batches has to do with the loop's computing, where workers come or go: the
    factor on it, and what is added, in ns. Shared memory is given back there, which takes a loop
    that hardly computes all its time."""
    if bool(plan.num_workers) == bool(w.num_workers):
        return 1.0, 0.0
    release = costs.handover(w.tensors, w.data_bytes, w.pickled_bytes, w.speed).release_ns
    if plan.num_workers:
        return 1.0, release
    return 1.0 - min(1.0, release / max(1.0, float(np.median(w.compute_ns)))), 0.0


def _copying(w: Workload, plan: Plan) -> float:
    """The factor on the time of copies."""
    pinned = 1.0
    if plan.pin_memory != w.pin_memory and "h2d" not in plan.factors:
        low, high = costs.PINNED_H2D
        pinned = (low + high) / 2 if plan.pin_memory else 2 / (low + high)
    return pinned * plan.factor("h2d")


def _on_device(w: Workload, plan: Plan, rows: npt.NDArray[np.int64]) -> dict[str, list[float]]:
    if w.on_device is None:
        return {}
    copy, kernel = (
        w.on_device.copy_ns[rows] * _copying(w, plan),
        w.on_device.kernel_ns[rows] * plan.factor("compute"),
    )
    return {"copy": copy.tolist(), "kernel": kernel.tolist()}


def _setting(w: Workload, plan: Plan) -> Setting:
    workers = plan.num_workers
    resumed = plan.persistent_workers or not workers
    start = costs.RESUME_NS * workers * w.speed
    if not resumed:
        start = costs.start_ns(plan.start_method, workers, plan.cpus, w.speed)
    if (
        w.num_workers
        and w.persistent_workers == plan.persistent_workers
        and w.start_method == plan.start_method
    ):
        if workers == w.num_workers:
            start = max(0.0, w.start_ns - w.draw_ns)
        elif workers:  # measured for another number of workers: the model says in what proportion
            start *= max(0.0, w.start_ns - w.draw_ns) / (_modelled_start(w) or 1.0)
    return Setting(
        workers=workers,
        prefetch=max(1, min(plan.prefetch_factor, 2 * BATCHES // max(1, workers))),
        in_order=plan.in_order,
        pin=plan.pin_memory,
        cpus=plan.cpus,
        compute_weight=max(1.0, w.compute_cores or 1.0),
        start_ns=start * plan.factor("startup") + w.draw_ns * plan.factor("draw"),
        cold_ns=0.0 if resumed else w.cold_ns * plan.factor("startup"),
        hop_ns=costs.TASK_HOP_NS * w.speed * plan.factor("transfer"),
        more_tasks=False,
        device=plan.together,
    )


def _modelled_start(w: Workload) -> float:
    if w.persistent_workers:
        return costs.RESUME_NS * w.num_workers * w.speed
    return costs.start_ns(w.start_method, w.num_workers, w.cpus, w.speed)


def _stop_ns(w: Workload, plan: Plan) -> float:
    if plan.persistent_workers or not plan.num_workers:
        return 0.0
    usual = costs.STOP_NS * plan.num_workers * w.speed
    if w.num_workers and not w.persistent_workers:
        usual = w.stop_ns * plan.num_workers / w.num_workers
    return usual
