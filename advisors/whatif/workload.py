"""What the simulation is fed with: the measured times of a loader's steady batches, and its epoch
starts apart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...profiler.store.run.run import LoaderRun, ProcessRun, Run
from ..stage_model.core_wait import core_wait_ratio, loop_span_ns, waiting_share
from ..stage_model.measured import mean
from ..stage_model.other_programs import others_share
from ..stage_model.stages import cpu_share, startup_ns
from ..stage_model.summary import effective_cpus
from ..stage_model.verdict import MINIMUM_BATCHES
from . import costs
from .costs import StartMethod
from .device_work import DeviceWork, device_work

Floats = npt.NDArray[np.float64]

# Batches are used in runs of consecutive ones, so that what comes together (a slow file, a busy
# disk) stays together.
BLOCK_ROWS = 32
# More batches than this add nothing to a simulation of some hundred, and reading a million rows
# would take a second.
MAX_ROWS = 20_000
# Fewer than this say little of a typical hand-over.
ENOUGH = 5
# What taking a batch costs beyond unpacking is torch's own code: more than this is something else.
RECEIVE_MOST_NS = 3e6
# Where computing takes less than this part of what making batches takes in main, other threads' CPU
# time is not laid to computing.
MINOR = 0.5
# A loop that computes for less than this share of its time does not compute.
LEAST_COMPUTING = 0.02
# Of a run's batches, the first part; those in it that take so many times as long as is typical warm
# something up.
EARLY, WARMING = 0.05, 8.0
# Ending workers may take so many times as long as usual; a longer pause between epochs is the
# user's (validation).
STOP_AT_MOST = 6.0


# Two threads that compute take the interpreter in turns of this length (sys.getswitchinterval):
# making a batch waits for it about as long as it computes, and one turn more.
SWITCH_NS = 5e6


class TooLittle(Exception):
    """Too little was measured to predict anything; the text is one sentence that says what is
    missing."""


@dataclass(frozen=True)
class Workload:
    """One loader's loop as it was measured. Arrays hold one value a steady batch, in ns, in the
    order of the run.

    Work is divided into CPU time and idle time (waiting for I/O, locks and, where several jobs
    share the cores, for a core: `Contention` in pipeline.py takes that last part out again).
    """

    num_workers: int
    prefetch_factor: int
    in_order: bool
    pin_memory: bool  # asked for, and a device there to pin for
    persistent_workers: bool
    start_method: StartMethod
    cpus: float  # effective cores
    device: bool
    epoch_batches: int
    index_ns: Floats = field(repr=False)
    fetch_cpu_ns: Floats = field(repr=False)
    fetch_idle_ns: Floats = field(repr=False)
    collate_cpu_ns: Floats = field(repr=False)
    collate_idle_ns: Floats = field(repr=False)
    pack_ns: Floats = field(repr=False)
    unpack_ns: Floats = field(repr=False)
    pin_ns: Floats = field(repr=False)
    h2d_ns: Floats = field(repr=False)
    compute_ns: Floats = field(
        repr=False
    )  # hand-over to next next(), with what of `wait` the device did not feel
    step_ns: Floats = field(repr=False)
    compute_cores: float | None  # CPU that main used while computing; None: not measured
    compute_idle_share: float  # of computing, spent waiting for something else than a core
    # in main a batch, beside drawing indices and unpacking; without workers: beside all else
    receive_ns: float
    measured_batch_ns: float  # of whole epochs after the first, their starts and ends included
    measured_inner_ns: float  # the same of steady batches alone
    start_ns: float  # iter() to the first fetch, an epoch after the first; 0 without workers
    stop_ns: float  # the epoch's end: workers ended
    cold_ns: float  # what the first batch of a fresh worker takes longer
    tensors: float
    data_bytes: float
    pickled_bytes: float  # outside tensors
    speed: float  # times of this machine / times of the reference machine
    # once an epoch: what the first batch's drawing takes longer than others', as of a permutation
    draw_ns: float = 0.0
    shares_in_collate: bool = (
        False  # workers, and torch's own collate, which makes tensors in shared memory there
    )
    turn_share: Floats | float = field(
        default=0.0, repr=False
    )  # of idle time, spent while the feeder thread packed
    on_device: DeviceWork | None = None  # None: no device that was timed
    core_wait: float = (
        0.0  # of the time main or a worker could have computed, the part it waited for a core
    )
    others: float = 0.0  # without workers: of the cores, the share that other programs keep busy

    @property
    def rows(self) -> int:
        return len(self.step_ns)

    @property
    def cold_lines_ns(self) -> float:
        """Without workers: what torch's own lines take longer than usual, as long batches have
        emptied the caches."""
        return (
            max(0.0, self.receive_ns - costs.SINGLE_OTHER_NS * self.speed)
            if not self.num_workers
            else 0.0
        )


def workload_of(run: Run, process: ProcessRun, loader: LoaderRun) -> Workload:
    """The loader's loop, from at most MAX_ROWS of its batches.

    Raises TooLittle for an iterable that is no DataLoader, fewer than MINIMUM_BATCHES steady
    batches, or batches whose making was not timed.
    """
    if loader.kind == "iterable":
        raise TooLittle(
            "it is not a DataLoader: only waiting and computing are seen, not how batches are made"
        )
    batches, workers = loader.batches, loader.num_workers
    rows = _spread(batches.rows)
    c: dict[str, Floats] = {
        name: batches[name][rows].astype(np.float64)
        for name in (
            "t_ns",
            "wait_ns",
            "index_ns",
            "fetch_ns",
            "collate_ns",
            "compute_ns",
            "t_fetch_ns",
            "pack_ns",
            "queued_ns",
            "unpack_ns",
            "pin_ns",
            "fetch_cpu_ns",
            "collate_cpu_ns",
            "h2d_ns",
            "stall_ns",
            "worker",
            "own_ns",
            "pickled_bytes",
        )
    }
    # Recording a batch in detail comes between its hand-over and the loop's own work, and is
    # neither.
    recording = np.nan_to_num(c["own_ns"]).clip(0)
    c["compute_ns"] = np.where(
        c["compute_ns"] >= 0, (c["compute_ns"] - recording).clip(0), c["compute_ns"]
    )
    epoch = batches["epoch"][rows]
    into = _into_epoch(batches["epoch"], rows)
    head = into == 0
    usable = (c["wait_ns"] >= 0) & (c["compute_ns"] >= 0) & (c["fetch_ns"] >= 0)
    if workers:
        usable &= (c["t_fetch_ns"] >= 0) & (c["pack_ns"] >= 0)
    # The first of an epoch and of each worker: workers that are kept start in the first epoch,
    # others in each.
    kept = loader.config.get("persistent_workers") is True
    fresh = head | (
        (into < max(1, workers)) & ((epoch == epoch[0]) if kept and len(epoch) else True)
    )
    steady = usable & ~(fresh if np.count_nonzero(usable & ~fresh) >= MINIMUM_BATCHES else head)
    steady &= ~_warming(c["fetch_ns"] + c["collate_ns"].clip(0), steady)
    count = int(np.count_nonzero(steady))
    if count < MINIMUM_BATCHES:
        known = int(np.count_nonzero((c["wait_ns"] >= 0) & (c["compute_ns"] >= 0) & ~head))
        if known >= MINIMUM_BATCHES:
            raise TooLittle("how long batches take to make was not measured")
        raise TooLittle(
            f"only {count} steady batches were recorded, and a prediction needs {MINIMUM_BATCHES}"
        )
    s = {name: values[steady] for name, values in c.items()}
    cpus = _cpus(run, process)
    wait, stall = s["wait_ns"], np.where(s["stall_ns"] >= 0, s["stall_ns"], s["wait_ns"])
    in_main_ready = 1.0 - (
        (core_wait_ratio(run, process, loader, in_main=True) or 0.0) if workers else 0.0
    )
    # Drawing only computes. What main waited for a core beside its workers, the simulation makes
    # anew.
    index, unpack, pin = (
        s["index_ns"].clip(0) * in_main_ready,
        s["unpack_ns"].clip(0),
        s["pin_ns"].clip(0),
    )
    receive = _receive_ns(s, workers)
    hidden = np.minimum(
        wait, (wait - stall).clip(0)
    )  # the device computed while main was in next()
    if workers:
        hidden = (hidden - index - unpack - receive).clip(0)
    compute = s["compute_ns"] + hidden
    fetch, collate = s["fetch_ns"], s["collate_ns"].clip(0)
    fetch_cpu = _cpu(fetch, s["fetch_cpu_ns"])
    collate_cpu = _cpu(collate, s["collate_cpu_ns"])
    # Of what is no CPU time, waiting for a core is no work: the simulation makes its own.
    ready = 1 / (1 - (core_wait_ratio(run, process, loader, in_main=not workers) or 0.0))
    if not workers:  # who took the core then was another program, and will take it again
        fetch_cpu, collate_cpu, ready = (
            np.minimum(fetch, fetch_cpu * ready),
            np.minimum(collate, collate_cpu * ready),
            1.0,
        )
    fetch_idle = (fetch - fetch_cpu * ready).clip(0)
    collate_idle = (collate - collate_cpu * ready).clip(0)
    turns = np.zeros(count)
    in_main = index + (receive + unpack if workers else fetch_cpu + collate_cpu)
    made = c["fetch_ns"] + c["collate_ns"].clip(0) + c["pack_ns"].clip(0)
    tensors, data_bytes, pickled = _sizes(loader, rows[steady])
    speed = costs.speed_of(_other_ns(s) if not workers else None)
    if workers:
        # A feeder thread packs one batch while the next is made: both want the interpreter, and
        # waiting for it is no latency. The simulation lets packing keep the worker instead.
        own = np.minimum(
            s["pack_ns"].clip(0), costs.handover(tensors, data_bytes, pickled, speed).pack_ns
        )
        own = np.minimum(
            own, fetch_cpu + collate_cpu + SWITCH_NS
        )  # who computes little seldom needs the interpreter
        before = fetch_idle + collate_idle
        fetch_idle, own = (fetch_idle - own).clip(0), (own - fetch_idle).clip(0)
        collate_idle = (collate_idle - own).clip(0)
        left = fetch_idle + collate_idle
        turns = np.minimum(
            left, (_beside_packing(c)[steady] - (before - left)).clip(0)
        ) / np.maximum(left, 1.0)
    method = costs.method_of(
        loader.config.get("start_method") or process.start_method, process.python
    )
    start, stop = (
        _start_ns(loader, workers, head & usable, c, epoch),
        _stop_ns(loader, workers, speed),
    )
    epoch_batches = _epoch_batches(loader)
    inner = float(np.mean((c["wait_ns"] + c["compute_ns"])[usable & ~head]))
    whole, repeated_own = _epoch_time_ns(loader, stop), _repeated(recording, epoch)
    on_device = device_work(loader, rows[steady])
    # The program may be far ahead of the device, which has the last word on how fast the loop is.
    by_device = on_device.step_ns if on_device is not None else 0.0
    compute_cores = _compute_cores(run, process, loader, wait, s["compute_ns"], in_main)
    compute_idle = waiting_share(
        1.0 - min(1.0, 1.0 if compute_cores is None else compute_cores),
        core_wait_ratio(run, process, loader, in_main=True) if workers else None,
    )
    return Workload(
        num_workers=workers,
        prefetch_factor=loader.prefetch_factor,
        in_order=loader.config.get("in_order") is not False,
        pin_memory=loader.config.get("pin_memory") is True and process.device is not None,
        persistent_workers=loader.config.get("persistent_workers") is True,
        start_method=method,
        cpus=cpus,
        device=process.device is not None,
        epoch_batches=epoch_batches,
        index_ns=index,
        fetch_cpu_ns=fetch_cpu,
        fetch_idle_ns=fetch_idle,
        collate_cpu_ns=collate_cpu,
        collate_idle_ns=collate_idle,
        pack_ns=s["pack_ns"].clip(0),
        unpack_ns=unpack,
        pin_ns=pin,
        h2d_ns=np.minimum(s["h2d_ns"].clip(0), compute),
        compute_ns=compute,
        step_ns=wait + s["compute_ns"],
        compute_cores=compute_cores,
        compute_idle_share=compute_idle or 0.0,
        receive_ns=receive,
        measured_batch_ns=max(
            by_device, whole - repeated_own if whole else inner + start / epoch_batches
        ),
        measured_inner_ns=max(by_device, inner),
        start_ns=start,
        stop_ns=stop,
        cold_ns=_cold_ns(made, fresh & usable, epoch, steady) if workers else 0.0,
        tensors=tensors,
        data_bytes=data_bytes,
        pickled_bytes=pickled,
        speed=speed,
        draw_ns=_draw_ns(c["index_ns"], head, epoch, steady) * in_main_ready,
        shares_in_collate=workers > 0 and _collates_by_default(loader),
        turn_share=turns,
        on_device=on_device,
        core_wait=max(
            core_wait_ratio(run, process, loader, in_main=main) or 0.0 for main in (True, False)
        ),
        # Workers that are started anew with each epoch are not seen to their ends.
        others=(others_share(run, process, loader) or 0.0) if not workers else 0.0,
    )


def _warming(made: Floats, steady: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which batches at the very beginning took so much longer than is typical that something was
    made for the first time: caches, files, compiled code. It does not come again, and a mean must
    not carry it."""
    rows = np.flatnonzero(steady)
    early = rows[: int(len(rows) * EARLY)]
    found = np.zeros(len(made), bool)
    if len(early):
        found[early] = made[early] > WARMING * max(1.0, float(np.median(made[rows])))
    return found


def _draw_ns(
    index: Floats,
    head: npt.NDArray[np.bool_],
    epoch: npt.NDArray[Any],
    steady: npt.NDArray[np.bool_],
) -> float:
    """What is drawn once an epoch: torch's shuffle makes a permutation of the whole data set, a
    list, with the first batch. It is the same work each time, so the starts that training repeats
    tell it, if only by one."""
    first = head & (index >= 0)
    later = first & (epoch != epoch[0])
    found = index[later if later.any() else first]
    return (
        max(0.0, float(np.median(found) - np.median(index[steady].clip(0)))) if len(found) else 0.0
    )


def _beside_packing(c: dict[str, Floats]) -> Floats:
    """For each batch, how long the worker's feeder thread was packing the one before while this one
    was made: both want the interpreter, so time without CPU in it was waiting for its turn, which
    ends where there is no feeder thread."""
    end = c["t_fetch_ns"] + c["fetch_ns"] + c["collate_ns"].clip(0)
    packed = end + c["pack_ns"].clip(0)
    found = np.zeros(len(end))
    for worker in np.unique(c["worker"]):
        own = np.flatnonzero((c["worker"] == worker) & (c["t_fetch_ns"] >= 0))
        own = own[np.argsort(c["t_fetch_ns"][own], kind="stable")]
        this, last = own[1:], own[:-1]
        found[this] = np.minimum(packed[last], end[this]) - np.maximum(
            end[last], c["t_fetch_ns"][this]
        )
    return found.clip(0)


def _spread(rows: int) -> npt.NDArray[np.int64]:
    """Row numbers: all of them, or blocks of consecutive ones spread evenly."""
    if rows <= MAX_ROWS:
        return np.arange(rows)
    starts = np.linspace(0, rows - BLOCK_ROWS, MAX_ROWS // BLOCK_ROWS).astype(np.int64)
    return np.unique((starts[:, None] + np.arange(BLOCK_ROWS)).ravel())


def _into_epoch(epoch: npt.NDArray[Any], rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How many batches of its epoch came before each of these."""
    starts = np.flatnonzero(np.diff(epoch, prepend=epoch[:1] - 1))
    found: npt.NDArray[np.int64] = rows - starts[np.searchsorted(starts, rows, side="right") - 1]
    return found


def _cpu(wall: Floats, cpu: Floats) -> Floats:
    """CPU time a batch: as measured, else by its share of the wall time of those measured (all of
    it if none was)."""
    share = cpu_share(wall, cpu)
    return np.minimum(np.where(cpu >= 0, cpu, wall * (1.0 if share is None else share)), wall)


def _cpus(run: Run, process: ProcessRun) -> float:
    found = effective_cpus(
        [p for p in run.processes if p.host == process.host], run.host_of(process)
    )
    return max(0.1, found) if found is not None else 1.0


def _receive_ns(s: dict[str, Floats], workers: int) -> float:
    """Time in main a batch that no stage explains: torch's own code, the hand-over of the next
    task."""
    if not workers:
        return max(0.0, float(np.median(_unexplained(s) - s["unpack_ns"].clip(0))))
    known = s["index_ns"].clip(0) + s["unpack_ns"].clip(0)
    end = s["t_ns"] + s["wait_ns"]
    sent = np.where(
        s["queued_ns"] >= 0,
        end - s["queued_ns"] - s["unpack_ns"].clip(0) - s["pin_ns"].clip(0),
        np.inf,
    )
    ready = sent <= s["t_ns"]
    if np.count_nonzero(ready) >= ENOUGH:
        found = float(np.median((s["wait_ns"] - known)[ready]))
    else:  # always awaited: the message arrives, main wakes up and takes it
        awaited = s["queued_ns"] >= 0
        found = (
            float(np.quantile(s["queued_ns"][awaited], 0.25))
            if np.any(awaited)
            else costs.RECEIVE_NS
        )
    # Bytes outside of tensors come through a pipe, a piece at a time: both ends wait for each
    # other.
    piped = float(np.mean(s["pickled_bytes"].clip(0))) * costs.PIPED_MOST_NS_PER_BYTE
    return min(RECEIVE_MOST_NS + piped, max(0.0, found))


def _other_ns(s: dict[str, Floats]) -> float:
    """Without workers: torch's own lines around a batch; 0 where the loop is too slow to tell."""
    if float(np.median(s["wait_ns"] + s["compute_ns"])) > costs.WARM_STEP_NS:
        return 0.0
    return float(np.quantile(_unexplained(s), 0.25))


def _unexplained(s: dict[str, Floats]) -> Floats:
    """Without workers: what of each wait no stage took."""
    known = (
        s["index_ns"].clip(0)
        + s["fetch_ns"].clip(0)
        + s["collate_ns"].clip(0)
        + s["pin_ns"].clip(0)
    )
    left: Floats = s["wait_ns"] - known
    return left


def _compute_cores(
    run: Run, process: ProcessRun, loader: LoaderRun, wait: Floats, compute: Floats, in_main: Floats
) -> float | None:
    """Cores main used while it computed: its CPU time between the first and the last sample inside
    the loop, less what loading took of it."""
    system = run.host_of(process)
    if system is None or not len(loader.batches["t_ns"]):
        return None
    lane = system.process
    begun, ended = loop_span_ns(loader)
    t = lane["t_ns"]
    own = (
        (lane["pid"] == process.pid)
        & (lane["role"] == 0)
        & (t >= begun)
        & (t <= ended)
        & (lane["cpu_user_ns"] >= 0)
    )
    own &= lane["cpu_system_ns"] >= 0
    where = np.flatnonzero(own)
    if len(where) < 2:
        return None
    first, last = where[0], where[-1]
    used = lane["cpu_user_ns"][last] + lane["cpu_system_ns"][last]
    used = float(used - lane["cpu_user_ns"][first] - lane["cpu_system_ns"][first])
    cores = used / float(max(1, t[last] - t[first]))
    computing = float(compute.mean())
    if computing <= LEAST_COMPUTING * float(np.mean(wait + compute)):
        return 1.0  # what is left of main's CPU time would be divided by next to nothing
    found = (cores * float(np.mean(wait + compute)) - float(in_main.mean())) / computing
    if not loader.num_workers and computing < MINOR * float(in_main.mean()):
        found = min(
            found, 1.0
        )  # more is rather threads of the fetching, which spin while they wait for work
    return min(max(1.0, float(process.torch_threads or 1)), max(0.0, found))


def _sizes(loader: LoaderRun, rows: npt.NDArray[np.int64]) -> tuple[float, float, float]:
    """(tensors, bytes in tensors, bytes outside) of a typical batch."""
    tensors = mean(loader.batches["tensors"][rows])
    tensors = 1.0 if tensors is None else tensors
    data_bytes = mean(loader.batches["bytes"][rows]) or 0.0
    leaves = loader.inspection.leaves
    if loader.num_workers:
        pickled = mean(loader.batches["pickled_bytes"][rows]) or 0.0
    elif leaves and not any(leaf.kind == "tensor" for leaf in leaves):
        pickled = data_bytes  # arrays and texts go through the pipe
    else:
        pickled = float(sum(leaf.nbytes or 0 for leaf in leaves if leaf.kind != "tensor"))
    return tensors, max(0.0, data_bytes - pickled) if tensors else 0.0, pickled


def _collates_by_default(loader: LoaderRun) -> bool:
    told = loader.config.get("collate_fn")
    return told is None or (isinstance(told, str) and told.rpartition(".")[2] == "default_collate")


def _epoch_batches(loader: LoaderRun) -> int:
    """Batches of a typical epoch: of those that ran to their end, else as the data set's length
    says."""
    epochs = loader.epochs
    whole = epochs["batches"][(epochs["how"] == 1) & (epochs["batches"] > 0)]
    if len(whole):
        return max(1, int(np.median(whole)))
    length, size = loader.config.get("dataset_len"), loader.config.get("batch_size")
    told = length // size if isinstance(length, int) and isinstance(size, int) and size > 0 else 0
    started = max(1, epochs.rows)
    return max(1, told, loader.count // started)


def _repeated(values: Floats, epoch: npt.NDArray[Any]) -> float:
    """The mean over the epochs that training repeats: what was done once at the beginning is no
    part of them."""
    later = epoch != epoch[0]
    return float(values[later].mean() if later.any() else values.mean())


def _later(loader: LoaderRun) -> npt.NDArray[np.int64]:
    """The epochs that training repeats: all but the first, or the first if there is but one. Of a
    tuned loader, those in which no other settings than the code's made batches, and the first,
    which begins with these."""
    coded = _as_coded(loader)
    coded[:1] = True
    found: npt.NDArray[np.int64] = np.flatnonzero((startup_ns(loader) >= 0) & coded)
    return found[1:] if len(found) > 1 else found


def _as_coded(loader: LoaderRun) -> npt.NDArray[np.bool_]:
    """Which epochs are there whole: `LoaderRun.as_coded` leaves out what tuning made with other
    settings."""
    epochs = loader.epochs
    if loader.tuning is None:
        return np.ones(epochs.rows, bool)
    made = dict(zip(*np.unique(loader.batches["epoch"], return_counts=True), strict=True))
    return np.array(
        [made.get(e, 0) == n for e, n in zip(epochs["epoch"], epochs["batches"], strict=True)], bool
    )


def _start_ns(
    loader: LoaderRun,
    workers: int,
    head: npt.NDArray[np.bool_],
    c: dict[str, Floats],
    epoch: npt.NDArray[Any],
) -> float:
    """From `iter()` to the beginning of the first fetch, median over the epochs training
    repeats."""
    if not workers:
        return 0.0
    began = {int(e): t for e, t in zip(epoch[head], c["t_fetch_ns"][head], strict=True)}
    rows = _later(loader)
    pairs = zip(loader.epochs["epoch"][rows], loader.epochs["t_iter_ns"][rows], strict=True)
    found = [began[int(e)] - float(t) for e, t in pairs if int(e) in began]
    return max(0.0, float(np.median(found))) if found else 0.0


def _stop_ns(loader: LoaderRun, workers: int, speed: float) -> float:
    """Ending the workers: the time between two epochs, or the usual time where that is too long to
    be only this."""
    if not workers or loader.config.get("persistent_workers") is True:
        return 0.0
    usual = costs.STOP_NS * workers * speed
    t_end, t_iter = loader.epochs["t_end_ns"], loader.epochs["t_iter_ns"]
    whole = _as_coded(loader)
    gaps = (t_iter[1:] - t_end[:-1])[(t_end[:-1] >= 0) & whole[1:] & whole[:-1]]
    gap = float(np.median(gaps)) if len(gaps) else -1.0
    return gap if 0.0 <= gap <= STOP_AT_MOST * usual else usual


def _cold_ns(
    made: Floats,
    fresh: npt.NDArray[np.bool_],
    epoch: npt.NDArray[Any],
    steady: npt.NDArray[np.bool_],
) -> float:
    """What the first batch of a worker takes longer to make and to send than others do."""
    later = fresh & (epoch != epoch[0])  # in the first epoch, files are read for the first time
    first = made[later if later.any() else fresh]
    return max(0.0, float(np.median(first) - np.median(made[steady]))) if len(first) else 0.0


def _epoch_time_ns(loader: LoaderRun, stop: float) -> float | None:
    """Time a batch over the whole epochs after the first (or the first), from `iter()` to the end
    of the workers."""
    epochs = loader.epochs
    rows = _later(loader)
    ran = (epochs["t_end_ns"][rows] > epochs["t_iter_ns"][rows]) & _as_coded(loader)[rows]
    rows = rows[(epochs["how"][rows] == 1) & (epochs["batches"][rows] > 0) & ran]
    if not len(rows):
        return None
    took = (epochs["t_end_ns"][rows] - epochs["t_iter_ns"][rows]).astype(np.float64) + stop
    return float(took.sum() / epochs["batches"][rows].sum())
