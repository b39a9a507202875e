"""How busy workers are, how uneven their batches are, and who uses the CPUs.

All are read off one case. None means that it was not measured.
"""

import math
from typing import NamedTuple

from ...profiler.base.arrays import Rows
from ..schema.evidence import Evidence, figure, in_cores, percent, us
from ..schema.report_model import Doing
from ..stage_model.measured import mean
from ..stage_model.process_rows import grown, process_rows
from ..stage_model.wait_kinds import LEAST_SAMPLES
from ..whatif.costs import method_of
from .case import Case
from .fetching import fetch_idle_share

# Workers at work for more than this part of the time count as always busy: what is left is
# scheduling.
ALWAYS_BUSY = 0.9
# p95/p50 of fetch above this is variance worth absorbing: docs/causes.md, "One slow batch holds up
# others".
SPREAD = 3.0
# One slow batch in fifty shows in p99 only; it must then be slower still to matter.
TAIL = 6.0
# docs/causes.md, "Thresholds of other tools": loadtune.
SATURATED = 0.85
# The part of the run in which the CPU quota stopped the container.
THROTTLED = 0.05
# A machine this busy has no free core most of the time: other programs count too.
BUSY = 0.9
# Below this CPU over wall time, fetching mostly waits (I/O, locks): workers may then exceed the
# CPUs (docs/causes.md, "Remote storage").
LATENCY_BOUND_BELOW = 0.5
# More tensors than this, each of fewer bytes, cost by their number: docs/causes.md, "Many tiny
# tensors".
MANY_TENSORS, TINY_BYTES = 32, 4096
# A batch's cost is by the byte, not by the call, only from about here: a megabyte takes some 0.1 ms
# to copy.
BIG_BYTES = 4_000_000
# A tensor that is a part of another one is sent with all of that one's memory (pytorch#1995).
MOSTLY_UNUSED = 4
# What a thread waits for, by `WAITS` of stack samples.
WAITS_FOR = {
    "disk": "for the disk",
    "network": "for the network",
    "lock": "for a lock",
    "threads": "for threads of its own, which compute",
    "sleep": "for a timer",
    "core": "for a core",
    "child": "for a program that computes",
    "child waits": "for a program that waits itself",
    "server": "for a process that computes",
    "server waits": "for a process that waits itself",
    "process": "for another process",
    "gil": "for the interpreter (GIL)",
    "fault": "for memory",
    "pipe": "for another process",
    "device": "for a device",
}


def cpu_over_wall(case: Case) -> float | None:
    """CPU over wall time of fetch, as if a core were always free: 1 is computing, 0 is waiting."""
    idle = fetch_idle_share(case)
    return 1 - idle if idle is not None else None


def waits_of(case: Case) -> tuple[Doing, ...]:
    """What fetching waits for besides a core, as stack samples saw it, the most frequent first."""
    stage = case.code_stage("fetch", LEAST_SAMPLES)
    found = stage.doing if stage is not None else ()
    return tuple(each for each in found if each.kind not in ("compute", "core"))


def parts_of_more(case: Case) -> tuple[int, int] | None:
    """The bytes of a batch's tensors, and of the memory that one is a part of, where that is much
    more than all of them."""
    leaves = case.inspection.leaves
    used = sum(leaf.nbytes or 0 for leaf in leaves)
    kept = max((leaf.storage_bytes for leaf in leaves), default=0)
    return (used, kept) if kept > max(BIG_BYTES, MOSTLY_UNUSED * used) else None


def workers_busy(case: Case) -> float | None:
    """Part of the time a worker is fetching, collating or packing, mean over the workers."""
    share = case.share("fetch", "collate", "pack")
    return min(1.0, share / case.num_workers) if share is not None and case.num_workers else None


def slow_batches(case: Case) -> bool:
    """Whether fetching is uneven, and slow batches take longer than a step of the loop.

    Uneven is p95/p50, or half of p99/p50 where a rarer slow batch says more, above SPREAD.
    """
    fetch = case.report.stages.get("fetch")
    if fetch is None or not fetch.p50_us or fetch.p95_us is None or fetch.p99_us is None:
        return False
    uneven = max(fetch.p95_us, fetch.p99_us * SPREAD / TAIL) / fetch.p50_us
    return uneven > SPREAD and fetch.p99_us > (case.mean_us("wait", "compute") or 0.0)


def many_small(case: Case) -> float:
    """How many tensors of a batch are smaller than TINY_BYTES, 0 if there are not MANY_TENSORS."""
    sizes = [leaf.nbytes or 0 for leaf in case.inspection.leaves if leaf.kind == "tensor"]
    tiny = sum(each < TINY_BYTES for each in sizes) / max(1, len(sizes))
    small = tiny * (per_batch(case, "tensors") or 0.0)
    return small if small > MANY_TENSORS else 0.0


def per_batch(case: Case, column: str) -> float | None:
    """Mean of a column of the batches, such as "tensors" or "pickled_bytes" (through the pipe)."""
    return mean(case.loader.batches[column])


def start_method(case: Case) -> str:
    """How workers are started: as configured, else the default of the recording Python on Linux."""
    return method_of(
        case.config.get("start_method") or case.process.start_method, case.process.python
    )


def batches_a_pass(case: Case) -> float | None:
    """Batches per call of `iter(loader)`."""
    rows = case.loader.epochs.rows
    return case.loader.count / rows if rows else None


def fetch_times(case: Case) -> Evidence:
    """As evidence: how uneven fetching is, and whether workers have time left."""
    fetch = case.report.stages["fetch"]
    return {
        "fetch, median": us(fetch.p50_us),
        "fetch, p95": us(fetch.p95_us),
        "fetch, p99": us(fetch.p99_us),
        "workers at work": percent(workers_busy(case)),
    }


def making_figures(case: Case) -> Evidence:
    """As evidence: what a batch costs, and which CPUs there are for it."""
    return {
        "making a batch": us(case.making_us),
        "effective CPUs": in_cores(case.cpus),
        "fetching computes, or waits for a core": percent(cpu_over_wall(case)),
        "handing a batch over": us(case.hand_over_us),
        **{
            f"fetching waits, {WAITS_FOR[each.kind]}": percent(each.share)
            for each in waits_of(case)[:2]
            if each.kind in WAITS_FOR
        },
    }


class Cores(NamedTuple):
    """CPU use in cores while workers worked: of all workers, of the mean worker, of main."""

    workers: float
    worker: float
    main: float


def cores(case: Case) -> Cores | None:
    """None without a sampler, or if no worker was sampled twice after its first batch."""
    began = int(case.loader.batches["t_ns"][0]) if case.loader.batches.rows else 0
    used = _used(case, began, in_main=False)
    if not used:
        return None
    cpu_ns, begun, ended = zip(*used, strict=True)
    own = _used(case, min(begun), in_main=True)
    return Cores(
        workers=sum(cpu_ns) / (max(ended) - min(begun)),
        worker=sum(cpu_ns) / (sum(ended) - sum(begun)),
        main=next((ns / (end - begin) for ns, begin, end in own), 0.0),
    )


def _used(case: Case, since_ns: int, *, in_main: bool) -> list[tuple[float, int, int]]:
    """(CPU time, from, to) of each process between its first and last sample after `since_ns`."""
    found: list[tuple[float, int, int]] = []
    if case.host is None:
        return found
    lane = case.host.process
    for each in process_rows(lane, case.process, case.loader, in_main=in_main):
        rows = each[(lane["cpu_user_ns"][each] >= 0) & (lane["t_ns"][each] >= since_ns)]
        times = lane["t_ns"][rows].tolist()
        if times and times[-1] > times[0]:
            found.append((grown(lane, rows, "cpu_user_ns", "cpu_system_ns"), times[0], times[-1]))
    return found


def worker_rows(case: Case) -> list[Rows]:
    """Rows of each worker of this loader in the process lane; none without a sampler."""
    if case.host is None:
        return []
    return process_rows(case.host.process, case.process, case.loader, in_main=False)


def saturated(case: Case) -> bool:
    """Whether this rank's processes use nearly all their CPUs, or the container was stopped."""
    if (case.system.throttled_share or 0.0) > THROTTLED:
        return True
    used, cpus = cores(case), case.cpus
    return used is not None and cpus is not None and used.workers + used.main >= SATURATED * cpus


def contended(case: Case) -> bool:
    """Whether work waits for free CPUs, whoever uses them: workers do not hide such waiting."""
    return saturated(case) or (case.system.cpu_busy_mean_share or 0.0) >= BUSY


def over_budget(case: Case) -> bool:
    """Whether there are more workers than CPUs, and the CPUs are all in use."""
    return case.cpus is not None and case.num_workers > math.ceil(case.cpus) and saturated(case)


def crowded(case: Case) -> str:
    """What more workers than CPUs do."""
    workers = f"{case.num_workers} workers compete with each other and with the training loop"
    return f"On {figure(case.cpus)} CPUs, {workers}."
