"""The input of the simulation: a loader's loop as it was measured, and plans to change it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ...profiler.base.arrays import Floats
from ...profiler.store.run.run import LoaderRun, ProcessRun, Run
from ..stage_model.core_wait import core_wait_ratio, kernel_share, waiting_besides_core
from ..stage_model.other_programs import others_share
from ..stage_model.stages import cpu_share
from ..stage_model.summary import effective_cpus
from ..stage_model.wait_kinds import wait_kinds
from . import costs, epoch_times
from .device_work import DeviceWork, Together, device_work
from .main_work import compute_cores, receive_ns, sizes
from .recorded import Recorded, TooLittle, workers_stay
from .sharing import sharing_of

# Two threads that compute take turns of this length with the interpreter (sys.getswitchinterval):
# making a batch waits for it about as long as it computes, and one more turn.
SWITCH_NS = 5e6


@dataclass(frozen=True)
class Plan:
    """A loop to simulate: the DataLoader's arguments, a factor on each stage's time (1.0: as
    measured)."""

    num_workers: int
    prefetch_factor: int
    in_order: bool
    pin_memory: bool
    persistent_workers: bool
    multiprocessing_context: costs.StartMethod
    cpus: float  # effective cores
    together: Together | None = None  # None: no device that was timed
    factors: Mapping[str, float] = field(default_factory=dict)

    def factor(self, stage: str) -> float:
        return self.factors.get(stage, 1.0)


class Workload:
    """One loader's loop as it was measured. Arrays hold one value a steady batch, in ns, in the
    order of the run.

    Work is divided into CPU time and idle time (waiting for I/O, locks and, where several jobs
    share the cores, for a core: `Contention` in pipeline.py takes that last part out again).
    """

    def __init__(self, run: Run, process: ProcessRun, seen: Recorded) -> None:
        loader = seen.loader
        self.num_workers = workers = loader.num_workers
        self.rows, self.step_ns = seen.count, seen.step_ns
        main_waits, worker_waits = (
            core_wait_ratio(run, process, loader, in_main=main) or 0.0 for main in (True, False)
        )
        # The simulation adds main's waiting for a core beside its workers itself.
        self.beside = beside = main_waits if workers else 0.0
        self.tensors, data_bytes, self.pickled_bytes = sizes(seen)
        # Torch's own collate makes tensors in shared memory in a worker.
        collate = str(loader.config.get("collate_fn") or "default_collate")
        self.shares_in_collate = workers > 0 and collate.endswith("default_collate")
        self.handover = costs.handover(self.tensors, data_bytes, self.pickled_bytes)
        self.pack_ns, self.unpack_ns = seen.time("pack_ns"), seen.time("unpack_ns")
        self.pin_ns = seen.time("pin_ns")
        self.index_ns = seen.time("index_ns") * (1.0 - beside)
        # In main a batch, besides drawing indices and unpacking; without workers: besides all
        # stages.
        self.receive_ns = receive_ns(seen)
        self._make(seen, worker_waits if workers else main_waits)
        made_ns = self.receive_ns + self.unpack_ns if workers else self.cpu_ns
        # Hand-over to the next next(), and the part of `wait` the device worked.
        self.compute_ns = _compute(seen, self.index_ns + made_ns if workers else 0.0)
        self.h2d_ns = np.minimum(seen.time("h2d_ns"), self.compute_ns)
        # CPU that main used while computing; None: not measured. Of computing, the share spent
        # waiting for something else than a core.
        self.compute_cores = cores = compute_cores(run, process, seen, self.index_ns + made_ns)
        idle = None if cores is None else waiting_besides_core(max(0.0, 1.0 - cores), beside)
        self.compute_idle_share = idle or 0.0
        # None: no device that was timed.
        self.on_device = device_work(loader, seen.rows[seen.steady])
        self.plan = _plan(run, process, loader, self.on_device)  # as it was recorded
        self.device = process.device is not None
        self._epochs(seen, beside)
        # Of the cores, the share that other programs keep busy. Workers that are started anew with
        # each epoch are not seen to their ends.
        self.others = 0.0 if workers else others_share(run.host_of(process), self.plan.cpus)
        self.sharing = sharing_of(
            wait_kinds(run, process, loader),
            workers,
            float(self.step_ns.mean()),
            float((self.cpu_ns + self.idle_ns).mean()),
            float(self.idle_ns.mean()),
            kernel_share(run, process, loader, in_main=not workers),
        )

    def _epochs(self, seen: Recorded, beside: float) -> None:
        """What comes once an epoch. `beside` is main's waiting for a core, beside workers."""
        self.epoch_batches = epoch_times.epoch_batches(seen.loader)
        # iter() to the first fetch, and ending workers, of an epoch after the first.
        self.start_ns = epoch_times.start_ns(seen)
        self.stop_ns = epoch_times.stop_ns(seen.loader)
        # Time a batch: of whole epochs after the first, and of steady batches alone. The program
        # may be far ahead of the device, which limits the loop then.
        self.measured_batch_ns, self.measured_inner_ns = (
            each if self.on_device is None else max(self.on_device.step_ns, each)
            for each in epoch_times.measured_ns(seen, self.start_ns, self.stop_ns)
        )
        # The extra time of a fresh worker's first batch, and of an epoch's first drawing, such as
        # of a permutation.
        self.cold_ns = epoch_times.cold_ns(seen)
        self.draw_ns = epoch_times.draw_ns(seen) * (1.0 - beside)

    def _make(self, seen: Recorded, waits: float) -> None:
        """Making the batches. `waits` is the share of waiting for a core in the time it could
        compute. It is taken off, as the simulation adds its own."""
        ready = 1 / (1 - waits)
        made = []
        for name in ("fetch", "collate"):
            wall = seen.time(f"{name}_ns")
            cpu = _cpu(wall, seen.of_steady(f"{name}_cpu_ns"))
            busy = cpu * ready
            if not self.num_workers:  # another program had the core, and will have it again
                cpu = busy = np.minimum(wall, busy)
            made.append((cpu, (wall - busy).clip(0)))
        (self.fetch_cpu_ns, fetch_idle), (self.collate_cpu_ns, collate_idle) = made
        self.cpu_ns = self.fetch_cpu_ns + self.collate_cpu_ns
        before, turns = fetch_idle + collate_idle, np.zeros(seen.count)
        if self.num_workers:
            # A feeder thread packs one batch while the next is made. Both need the interpreter, so
            # some idle time is waiting for it; in the simulation packing blocks the worker instead.
            # A worker that computes little seldom needs the interpreter.
            pack = np.minimum(self.pack_ns, self.handover.pack_ns)
            own = np.minimum(pack, self.cpu_ns + SWITCH_NS)
            collate_idle = (collate_idle - (own - fetch_idle).clip(0)).clip(0)
            fetch_idle = (fetch_idle - own).clip(0)
            idle = fetch_idle + collate_idle
            turns = (_beside_packing(seen)[seen.steady] - (before - idle)).clip(0)
            turns = np.minimum(idle, turns) / np.maximum(idle, 1.0)
        self.fetch_idle_ns, self.collate_idle_ns = fetch_idle, collate_idle
        self.idle_ns = fetch_idle + collate_idle
        self.turn_share = turns  # of idle time, spent while a worker's feeder thread packed

    @property
    def own_cores(self) -> float:
        """Cores that the loop's computing keeps busy, one at most."""
        return min(1.0, 1.0 if self.compute_cores is None else self.compute_cores)


def workload_of(run: Run, process: ProcessRun, loader: LoaderRun) -> Workload:
    """The loader's loop. Raises TooLittle for an iterable that is no DataLoader, fewer than
    MINIMUM_BATCHES steady batches (of long ones, a few are enough), or batches whose making was
    not timed."""
    if loader.kind == "iterable":
        raise TooLittle("it is not a DataLoader: how batches are made was not recorded")
    return Workload(run, process, Recorded(loader))


def _plan(run: Run, process: ProcessRun, loader: LoaderRun, device: DeviceWork | None) -> Plan:
    config = loader.config
    here = [each for each in run.processes if each.host == process.host]
    cpus = effective_cpus(here, run.host_of(process))
    return Plan(
        num_workers=loader.num_workers,
        prefetch_factor=loader.prefetch_factor,
        in_order=config.get("in_order") is not False,
        pin_memory=config.get("pin_memory") is True and process.device is not None,
        persistent_workers=workers_stay(loader),
        multiprocessing_context=costs.method_of(
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
