"""Simulates a plan: what each batch costs under it, and the resulting time a batch."""

from dataclasses import dataclass

import numpy as np

from ...profiler.base.arrays import Floats, Ints
from ..stage_model.block_error import block_sums
from . import costs
from .recorded import spread_blocks
from .sharing import Sharing
from .simulate import Setting, Times, epoch
from .workload import Plan, Workload

# Batches in a simulation: enough for heavy tails to show, few enough for some ten milliseconds.
BATCHES = 720
SEED = 20_250_131
# The part of a long epoch that counts as its start, in which the queue fills.
HEAD_SHARE = 0.25
# Blocks for the uncertainty of a ratio (see advisors.stage_model.block_error).
BLOCKS = 16


@dataclass(frozen=True)
class Contention:
    """The part of measured idle time that is not waiting for a core, and stays when cores are
    free."""

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
    receive_ns: float


def drawn_rows(workload: Workload) -> Ints:
    """The batches every simulation of this workload runs over: blocks spread evenly over the run,
    in random order."""
    found = spread_blocks(workload.rows, BATCHES)
    np.random.default_rng(SEED).shuffle(found)
    return found.ravel()[:BATCHES]


def run_plan(
    w: Workload, plan: Plan, rows: Ints, contention: Contention, sharing: Sharing
) -> Outcome:
    """The loop under this plan, over these rows of the workload."""
    times = _times(w, plan, rows, contention, sharing)
    length, count = w.epoch_batches, len(rows)
    setting, stop = _setting(w, plan, more_tasks=length > count), _stop_ns(w, plan)
    if length > count:
        parts = [epoch(times, setting)]
        ends = np.asarray(parts[0].ends)
        head = int(count * HEAD_SHARE)
        inner = float(ends[-1] - ends[head - 1]) / (count - head)
        whole = (float(ends[head - 1]) + (length - head) * inner + stop) / length
        edges = np.linspace(head, count, BLOCKS + 1).astype(np.int64) - 1
        blocks = np.diff(ends[edges])
    else:
        parts = [epoch(times.part(first, length), setting) for first in range(0, count, length)]
        if len(parts) > 1 and len(parts[-1].ends) < length:
            parts.pop()
        count = sum(len(part.ends) for part in parts)
        took = sum(part.ends[-1] + stop for part in parts)
        inner, whole = (took - stop * len(parts)) / count, took / count
        steps = np.concatenate([np.diff(part.ends, prepend=0.0) for part in parts])
        blocks = block_sums(steps, BLOCKS, 1)
        if len(parts) >= BLOCKS // 2:  # of many short epochs, each is a block
            blocks = np.array([part.ends[-1] + stop for part in parts])
    return Outcome(
        batch_ns=whole,
        inner_ns=inner,
        blocks_ns=blocks,
        work_ns=sum(part.work_ns for part in parts) / max(1, sum(part.worked for part in parts)),
        compute_ns=sum(part.compute_ns for part in parts) / count,
        receive_ns=float(np.mean(times.receive)) if plan.num_workers else 0.0,
    )


def _times(w: Workload, plan: Plan, rows: Ints, contention: Contention, sharing: Sharing) -> Times:
    f = plan.factor
    index = w.index_ns[rows] * f("index")
    fetch, collate = made_in_main(w, plan, rows)
    work_cpu = fetch * f("fetch") + collate * f("collate")
    made = float(w.cpu_ns[rows].sum())
    left = min(1.0, float(work_cpu.sum()) / made) if made else 1.0
    idle = w.fetch_idle_ns[rows] * f("fetch") + w.collate_idle_ns[rows] * f("collate")
    work_idle = idle * contention.fetch
    if not plan.num_workers:  # no feeder thread wants the interpreter any more
        work_idle = work_idle * (1.0 - w.turn_share[rows])
    work_cpu = work_cpu + work_idle * sharing.computed
    work_idle = work_idle * max(0.0, 1 - sharing.computed - sharing.queued)
    held_cpu, held_idle = work_cpu * sharing.held, work_idle * sharing.held
    if plan.num_workers < 2 or not (held_cpu.any() or held_idle.any()):
        held_cpu = held_idle = np.zeros(0)
    pin = send = unpack = np.zeros(len(rows))
    if plan.pin_memory:
        measured = w.plan.pin_memory and w.pin_ns.any()
        pin = (w.pin_ns[rows] if measured else pin + w.handover.pin_ns) * f("pin")
    compute_cpu, compute_idle = _compute(w, plan, rows, contention)
    if plan.num_workers:
        own, send, unpack, receive = _handed_over(w, plan, rows, left)
        work_cpu = work_cpu + own
    else:
        receive = costs.SINGLE_OTHER_NS
        if not w.num_workers:  # measured
            receive = w.receive_ns
    in_pin_thread = unpack if plan.pin_memory else 0.0
    main, aside = index + receive + (unpack - in_pin_thread), pin + in_pin_thread
    every = [work_cpu, work_idle, send, main, aside, index, compute_cpu, compute_idle]
    every += [held_cpu, held_idle]
    if w.on_device is not None:
        copy = w.on_device.copy_ns[rows] * _copying(w, plan)
        every += [copy, w.on_device.kernel_ns[rows] * f("compute")]
    return Times(*(values.tolist() for values in every))


def _handed_over(
    w: Workload, plan: Plan, rows: Ints, left: float
) -> tuple[Floats, Floats, Floats, float]:
    """With workers: the part of packing that blocks the worker, the rest of packing, unpacking, and
    the rest of receiving a batch in main. `left` is the remaining share of computing in a worker.

    A feeder thread packs while the worker goes on, but both need the interpreter. The CPU time of
    packing blocks the worker; the rest of the measured time was waiting for the interpreter, or
    pickling objects. Unpacking asks a thread of the worker for each tensor, which waits likewise.
    With less work in the worker, both wait less: at most by as much.
    """
    model, zeros, transfer = w.handover, np.zeros(len(rows)), plan.factor("transfer")
    pack, unpack, receive = zeros + model.pack_ns, zeros + model.unpack_ns, model.receive_ns
    if w.num_workers:
        pack, unpack, receive = w.pack_ns[rows], w.unpack_ns[rows], w.receive_ns
    own, asked = np.minimum(pack, model.pack_ns), np.minimum(unpack, model.unpack_ns)
    computed = w.cpu_ns[rows]
    pack, unpack = (
        taken - np.minimum(taken - least, computed) * (1 - left)
        for taken, least in ((pack, own), (unpack, asked))
    )
    unpack = unpack * transfer * plan.factor("unpack")
    return own * transfer, (pack - own) * transfer, unpack, receive * transfer


def made_in_main(w: Workload, plan: Plan, rows: Ints) -> tuple[Floats, Floats]:
    """CPU time of fetching and collating; where workers go, without the extra time that they cost
    in a worker. A stage with a new time does not change."""
    fetch, collate = w.fetch_cpu_ns[rows], w.collate_cpu_ns[rows]
    if plan.num_workers or not w.num_workers:
        return fetch, collate
    if "fetch" not in plan.factors:
        fetch = fetch - np.minimum(fetch * costs.COLD_FETCH, costs.COLD_FETCH_MOST_NS)
    if "collate" not in plan.factors and w.shares_in_collate:
        shared = costs.SHARED_COLLATE_TENSOR_NS * w.tensors
        collate = collate - np.minimum(collate * costs.SHARED_COLLATE_MOST, shared)
    return fetch, collate


def _compute(w: Workload, plan: Plan, rows: Ints, contention: Contention) -> tuple[Floats, Floats]:
    """CPU and idle time of main's computing: all of it CPU where that was not measured. With a
    timed device, main's own part of a step."""
    share, factor = w.own_cores, plan.factor
    if w.on_device is not None:
        calls = w.on_device.call_ns[rows] * (1 - min(1.0, factor("h2d")))
        compute = (w.on_device.issue_ns[rows] - calls) * factor("compute")
        cpu = np.minimum(compute, w.compute_ns[rows] * share)
        return cpu, compute - cpu
    copies = w.h2d_ns[rows] * (_copying(w, plan) - 1.0)
    kept, more = released(w, plan)
    compute = (w.compute_ns[rows] + copies).clip(0) * factor("compute") * kept
    return compute * share + more, compute * w.compute_idle_share * contention.compute


def released(w: Workload, plan: Plan) -> tuple[float, float]:
    """How releasing batches changes the loop's computing, where workers come or go: a factor, and
    an added time in ns. The loop returns shared memory, which may be most of what it does."""
    if bool(plan.num_workers) == bool(w.num_workers):
        return 1.0, 0.0
    release = w.handover.release_ns
    if plan.num_workers:
        return 1.0, release
    return 1.0 - min(1.0, release / max(1.0, float(np.median(w.compute_ns)))), 0.0


def _copying(w: Workload, plan: Plan) -> float:
    """The factor on the time of copies."""
    pinned = 1.0
    if plan.pin_memory != w.plan.pin_memory and "h2d" not in plan.factors:
        low, high = costs.PINNED_H2D
        pinned = (low + high) / 2 if plan.pin_memory else 2 / (low + high)
    return pinned * plan.factor("h2d")


def _setting(w: Workload, plan: Plan, more_tasks: bool) -> Setting:
    workers, was = plan.num_workers, w.plan
    start = _modelled_start(w, plan)
    kept_alike = plan.persistent_workers == was.persistent_workers
    started_alike = plan.multiprocessing_context == was.multiprocessing_context
    if workers and w.num_workers and kept_alike and started_alike:
        # Measured; for another number of workers the model says in what proportion.
        changed = start / (_modelled_start(w, was) or 1.0) if workers != w.num_workers else 1.0
        start = max(0.0, w.start_ns - w.draw_ns) * changed
    return Setting(
        workers=workers,
        prefetch=max(1, min(plan.prefetch_factor, 2 * BATCHES // max(1, workers))),
        in_order=plan.in_order,
        pin=plan.pin_memory,
        cpus=plan.cpus,
        compute_weight=max(1.0, w.compute_cores or 1.0),
        start_ns=start * plan.factor("startup") + w.draw_ns * plan.factor("draw"),
        # A worker's is part of its start; without workers, it is fetching itself.
        cold_ns=0.0
        if plan.persistent_workers
        else w.cold_ns * plan.factor("startup" if w.num_workers else "fetch"),
        hop_ns=costs.TASK_HOP_NS * plan.factor("transfer"),
        more_tasks=more_tasks,
        device=plan.together,
    )


def _modelled_start(w: Workload, plan: Plan) -> float:
    if plan.persistent_workers:
        return costs.RESUME_NS * plan.num_workers
    return costs.start_ns(plan.multiprocessing_context, plan.num_workers, plan.cpus)


def _stop_ns(w: Workload, plan: Plan) -> float:
    if plan.persistent_workers or not plan.num_workers:
        return 0.0
    if w.num_workers and not w.plan.persistent_workers:
        return w.stop_ns * plan.num_workers / w.num_workers
    return costs.STOP_NS * plan.num_workers
