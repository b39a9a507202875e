"""The input of the simulation: a loader's loop as it was measured."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...profiler.store.run.run import LoaderRun, ProcessRun, Run
from ..stage_model.block_error import Floats
from ..stage_model.core_wait import core_wait_ratio, kernel_share, waiting_share
from ..stage_model.other_programs import others_share
from ..stage_model.stages import cpu_share
from ..stage_model.summary import effective_cpus
from ..stage_model.wait_kinds import wait_kinds
from . import costs, epoch_times
from .device_work import DeviceWork, device_work
from .main_work import compute_cores, receive_ns, sizes, speed_of
from .plan import Plan
from .recorded import Recorded, TooLittle
from .sharing import Sharing, sharing_of

# Two threads that compute take turns of this length with the interpreter (sys.getswitchinterval):
# making a batch waits for it about as long as it computes, and one more turn.
SWITCH_NS = 5e6


class Work(NamedTuple):
    """Making each steady batch."""

    fetch_cpu_ns: Floats
    fetch_idle_ns: Floats
    collate_cpu_ns: Floats
    collate_idle_ns: Floats
    turn_share: Floats  # of idle time, spent while a worker's feeder thread packed


@dataclass(frozen=True, repr=False)
class Workload:
    """One loader's loop as it was measured. Arrays hold one value a steady batch, in ns, in the
    order of the run.

    Work is divided into CPU time and idle time (waiting for I/O, locks and, where several jobs
    share the cores, for a core: `Contention` in pipeline.py takes that last part out again).
    """

    plan: Plan  # as it was recorded
    device: bool
    epoch_batches: int
    index_ns: Floats
    fetch_cpu_ns: Floats
    fetch_idle_ns: Floats
    collate_cpu_ns: Floats
    collate_idle_ns: Floats
    turn_share: Floats  # of idle time, spent while a worker's feeder thread packed
    pack_ns: Floats
    unpack_ns: Floats
    pin_ns: Floats
    h2d_ns: Floats
    compute_ns: Floats  # hand-over to the next next(), and the part of `wait` the device worked
    step_ns: Floats
    compute_cores: float | None  # CPU that main used while computing; None: not measured
    compute_idle_share: float  # of computing, spent waiting for something else than a core
    # in main a batch, besides drawing indices and unpacking; without workers: besides all stages
    receive_ns: float
    measured_batch_ns: float  # of whole epochs after the first, their starts and ends included
    measured_inner_ns: float  # the same of steady batches alone
    start_ns: float  # iter() to the first fetch, an epoch after the first; 0 without workers
    stop_ns: float  # the epoch's end: workers ended
    cold_ns: float  # the extra time of a fresh worker's first batch
    draw_ns: float  # the extra time of an epoch's first drawing, such as of a permutation
    tensors: float
    data_bytes: float
    pickled_bytes: float  # outside tensors
    speed: float  # times of this machine / times of the reference machine
    # Workers and torch's own collate, which makes tensors in shared memory there.
    shares_in_collate: bool
    on_device: DeviceWork | None  # None: no device that was timed
    core_wait: float  # of the time main or a worker could compute, the part it waited for a core
    others: float  # without workers: of the cores, the share that other programs keep busy
    sharing: Sharing  # what workers share

    @property
    def num_workers(self) -> int:
        return self.plan.num_workers

    @property
    def rows(self) -> int:
        return len(self.step_ns)

    @property
    def cold_lines_ns(self) -> float:
        """Without workers: the extra time of torch's own lines after long batches have emptied the
        caches."""
        usual = costs.SINGLE_OTHER_NS * self.speed
        return 0.0 if self.num_workers else max(0.0, self.receive_ns - usual)

    @cached_property
    def handover(self) -> costs.Handover:
        """What handing these batches over costs by the model."""
        return costs.handover(self.tensors, self.data_bytes, self.pickled_bytes, self.speed)


def workload_of(run: Run, process: ProcessRun, loader: LoaderRun) -> Workload:
    """The loader's loop. Raises TooLittle for an iterable that is no DataLoader, fewer than
    MINIMUM_BATCHES steady batches (of long ones, a few are enough), or batches whose making was
    not timed."""
    if loader.kind == "iterable":
        raise TooLittle("it is not a DataLoader: how batches are made was not recorded")
    seen = Recorded(loader)
    seen.check()
    workers = loader.num_workers
    main_waits, worker_waits = (
        core_wait_ratio(run, process, loader, in_main=main) or 0.0 for main in (True, False)
    )
    # The simulation adds main's waiting for a core beside its workers itself.
    beside = main_waits if workers else 0.0
    index, unpack = seen.time("index_ns") * (1.0 - beside), seen.time("unpack_ns")
    receive, speed = receive_ns(seen), speed_of(seen)
    tensors, data_bytes, pickled = sizes(loader, seen)
    pack_ns = costs.handover(tensors, data_bytes, pickled, speed).pack_ns
    work = _work(seen, worker_waits if workers else main_waits, pack_ns)
    compute = _compute(seen, index + unpack + receive if workers else 0.0)
    made_ns = receive + unpack if workers else work.fetch_cpu_ns + work.collate_cpu_ns
    cores = compute_cores(run, process, seen, index + made_ns)
    idle_share = waiting_share(max(0.0, 1.0 - cores), beside) if cores is not None else None
    on_device = device_work(loader, seen.rows[seen.steady])
    start, stop = epoch_times.start_ns(seen), epoch_times.stop_ns(loader, speed)
    whole, inner = epoch_times.measured_ns(seen, start, stop)
    return Workload(
        _plan(run, process, loader, on_device),
        process.device is not None,
        epoch_times.epoch_batches(loader),
        index,
        *work,
        pack_ns=seen.time("pack_ns"),
        unpack_ns=unpack,
        pin_ns=seen.time("pin_ns"),
        h2d_ns=np.minimum(seen.time("h2d_ns"), compute),
        compute_ns=compute,
        step_ns=(seen.wait + seen.compute)[seen.steady],
        compute_cores=cores,
        compute_idle_share=idle_share or 0.0,
        receive_ns=receive,
        measured_batch_ns=_or_device(whole, on_device),
        measured_inner_ns=_or_device(inner, on_device),
        start_ns=start,
        stop_ns=stop,
        cold_ns=epoch_times.cold_ns(seen),
        draw_ns=epoch_times.draw_ns(seen) * (1.0 - beside),
        tensors=tensors,
        data_bytes=data_bytes,
        pickled_bytes=pickled,
        speed=speed,
        shares_in_collate=workers > 0 and _collates_by_default(loader),
        on_device=on_device,
        core_wait=max(main_waits, worker_waits),
        # Workers that are started anew with each epoch are not seen to their ends.
        others=(others_share(run, process, loader) or 0.0) if not workers else 0.0,
        sharing=_sharing(run, process, seen, work),
    )


def _or_device(batch_ns: float, work: DeviceWork | None) -> float:
    """The program may be far ahead of the device, which limits the loop then."""
    return batch_ns if work is None else max(work.step_ns, batch_ns)


def _sharing(run: Run, process: ProcessRun, seen: Recorded, work: Work) -> Sharing:
    loader = seen.loader
    return sharing_of(
        wait_kinds(run, process, loader),
        loader.num_workers,
        float((seen.wait + seen.compute)[seen.steady].mean()),
        float(sum(each.mean() for each in work[:4])),
        float((work.fetch_idle_ns + work.collate_idle_ns).mean()),
        kernel_share(run, process, loader, in_main=not loader.num_workers) or 0.0,
    )


def _plan(run: Run, process: ProcessRun, loader: LoaderRun, device: DeviceWork | None) -> Plan:
    config = loader.config
    here = [each for each in run.processes if each.host == process.host]
    cpus = effective_cpus(here, run.host_of(process))
    return Plan(
        num_workers=loader.num_workers,
        prefetch_factor=loader.prefetch_factor,
        in_order=config.get("in_order") is not False,
        pin_memory=config.get("pin_memory") is True and process.device is not None,
        persistent_workers=config.get("persistent_workers") is True,
        start_method=costs.method_of(
            config.get("start_method") or process.start_method, process.python
        ),
        cpus=1.0 if cpus is None else max(0.1, cpus),
        together=device.together if device is not None else None,
    )


def _compute(seen: Recorded, in_main: Floats | float) -> Floats:
    """The loop's own computing, and the time in next() in which the device worked and main did not
    load (`in_main`)."""
    stall, wait = seen.of_steady("stall_ns"), seen.wait[seen.steady]
    hidden = np.where(stall >= 0, wait - stall, 0.0).clip(0)
    found: Floats = seen.compute[seen.steady] + (hidden - in_main).clip(0)
    return found


def _work(seen: Recorded, waits: float, pack_ns: float) -> Work:
    """Making the batches. `waits` is the share of waiting for a core in the time it could compute.
    It is taken off, as the simulation adds its own."""
    ready = 1 / (1 - waits)
    made = []
    for name in ("fetch", "collate"):
        wall = seen.time(f"{name}_ns")
        cpu = _cpu(wall, seen.of_steady(f"{name}_cpu_ns"))
        busy = cpu * ready
        if not seen.loader.num_workers:  # another program had the core, and will have it again
            cpu = busy = np.minimum(wall, busy)
        made.append((cpu, (wall - busy).clip(0)))
    (fetch_cpu, fetch_idle), (collate_cpu, collate_idle) = made
    if not seen.loader.num_workers:
        return Work(fetch_cpu, fetch_idle, collate_cpu, collate_idle, np.zeros(seen.count))
    # A feeder thread packs one batch while the next is made. Both need the interpreter, so some
    # idle time is waiting for it; in the simulation packing blocks the worker instead. A worker
    # that computes little seldom needs the interpreter.
    own = np.minimum(np.minimum(seen.time("pack_ns"), pack_ns), fetch_cpu + collate_cpu + SWITCH_NS)
    before = fetch_idle + collate_idle
    collate_idle = (collate_idle - (own - fetch_idle).clip(0)).clip(0)
    fetch_idle = (fetch_idle - own).clip(0)
    idle = fetch_idle + collate_idle
    turns = (_beside_packing(seen)[seen.steady] - (before - idle)).clip(0)
    turns = np.minimum(idle, turns) / np.maximum(idle, 1.0)
    return Work(fetch_cpu, fetch_idle, collate_cpu, collate_idle, turns)


def _cpu(wall: Floats, cpu: Floats) -> Floats:
    """CPU time a batch: as measured, else by its share of the wall time of those measured (all of
    it if none was)."""
    share = cpu_share(wall, cpu)
    return np.minimum(np.where(cpu >= 0, cpu, wall * (1.0 if share is None else share)), wall)


def _beside_packing(seen: Recorded) -> Floats:
    """For each batch, how long the feeder thread packed the one before while this one was made.
    Idle time in it was waiting for the interpreter, which no worker needs without a feeder
    thread."""
    begin, worker = seen.column("t_fetch_ns"), seen.column("worker")
    end = begin + seen.work
    packed = end + seen.column("pack_ns").clip(0)
    found = np.zeros(len(end))
    for number in np.unique(worker):
        own = np.flatnonzero((worker == number) & (begin >= 0))
        own = own[np.argsort(begin[own], kind="stable")]
        this, last = own[1:], own[:-1]
        found[this] = np.minimum(packed[last], end[this]) - np.maximum(end[last], begin[this])
    return found.clip(0)


def _collates_by_default(loader: LoaderRun) -> bool:
    name = loader.config.get("collate_fn")
    return name is None or (isinstance(name, str) and name.rpartition(".")[2] == "default_collate")
