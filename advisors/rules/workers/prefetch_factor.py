"""How many batches each worker makes ahead: more against unevenness, fewer for memory.

What it looks for
    Fetch times that vary (p95/p50 above 3 or p99/p50 above 6) so that slow batches take longer than
    a step of the loop, while the workers have idle room (at work less than 90 % of the time,
    ALWAYS_BUSY) and the loop waits now and then. Also batches in flight that fill half of /dev/shm
    or of the free memory (HELD_SHARE) without being needed.

Why it matters
    A queue evens out bad moments; it adds no capacity. Where the workers are always busy, a longer
    one is only filled once: the rate stays as it is and memory rises.

What to change
    Set prefetch_factor to the number named: the smallest within 2 % of the best, by the what-if
    model.

When not to
    With workers that are always busy, or with batches so large that num_workers × prefetch_factor
    of them do not fit.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....profiler.base.torch_parts import DEFAULT_PREFETCH
from ...case.advice import Advice, Outcome, smallest
from ...case.case import Case
from ...case.evidence import ALWAYS_BUSY, slow_batches, workers_busy
from ...schema.figures import figure, percent, size, us
from ...schema.gains import LEAST_GAIN

NAME = "prefetch-factor"
KIND = "speed"
EFFORT = "one argument"

CANDIDATES = (4, 8, 16, 32)
# Batches in flight above this part of /dev/shm or free memory are worth shrinking (shared-memory
# warns at 80 %).
HELD_SHARE = 0.5
# Below this waiting the queue is deep enough.
LEAST_WAITING = 0.02


def examine(case: Case) -> Iterator[Outcome]:
    if not case.num_workers or case.whatif is None:
        return
    busy, waiting = workers_busy(case), case.share("wait")
    if busy is None or waiting is None:
        return
    now = case.loader.prefetch_factor
    evidence = _evidence(case, busy, now)
    if waiting >= LEAST_WAITING and busy < ALWAYS_BUSY and slow_batches(case):
        options = {n: case.change(prefetch_factor=n) for n in CANDIDATES if n > now}
        pick, best = smallest(options or {now: case.change()})
        if best > LEAST_GAIN:
            yield options[pick].advise(
                title=f"Let each worker make {pick} batches ahead",
                why=f"Fetching is uneven: slow batches take {_slow(case)} times as long as the "
                f"middle one. The workers have idle room ({percent(1 - busy)} of the time), so a "
                "longer queue rides it out.",
                evidence=evidence,
                caveat=_memory(case, pick - now),
            )
            return
    if busy >= ALWAYS_BUSY and case.report.verdict == "input-bound":
        usual = max(2 * now, 4)
        change = case.change(prefetch_factor=usual)
        if change.predicted.mid < LEAST_GAIN:
            yield change.would_not_help(
                f"The workers are busy {percent(busy)} of the time, so a longer queue stays empty. "
                f"{_memory(case, usual - now) or ''}".rstrip(),
                evidence,
            )
    yield from _fewer(case, now, evidence)


def _fewer(case: Case, now: int, evidence: dict[str, str]) -> Iterator[Advice]:
    held, room, where = _held(case, now)
    if case.whatif is None or now <= DEFAULT_PREFETCH or not room or held <= HELD_SHARE * room:
        return
    change = case.change(prefetch_factor=DEFAULT_PREFETCH)
    if change.predicted.mid < 0.98:
        return
    yield change.advise(
        title=f"Let each worker make {DEFAULT_PREFETCH} batches ahead instead of {now}",
        why=f"Up to {size(held)} of batches lie in {where} ({percent(held / room)} of its "
        f"{size(room)}), and training would be as fast with {size(held * DEFAULT_PREFETCH / now)}.",
        evidence={**evidence, "batches in flight": size(held)},
        kind="safety",
    )


def _held(case: Case, factor: int) -> tuple[float, float, str]:
    """(bytes of batches in flight, bytes there are, where); zeros where unknown."""
    a_batch = case.report.bytes_per_batch
    if a_batch is None:
        return 0.0, 0.0, ""
    rooms = [
        (case.system.shm_total_bytes, "/dev/shm"),
        (case.system.mem_available_min_bytes, "memory"),
    ]
    known = [(room, where) for room, where in rooms if room]
    room, where = min(known, default=(0, ""))
    return case.num_workers * factor * a_batch, room, where


def _memory(case: Case, more: int) -> str | None:
    a_batch = case.report.bytes_per_batch
    return (
        f"It holds {size(more * case.num_workers * a_batch)} more in shared memory."
        if a_batch
        else None
    )


def _slow(case: Case) -> str:
    fetch = case.report.stages["fetch"]
    return figure((fetch.p99_us or 0) / (fetch.p50_us or 1))


def _evidence(case: Case, busy: float, now: int) -> dict[str, str]:
    fetch = case.report.stages["fetch"]
    return {
        "fetch, median": us(fetch.p50_us or 0),
        "fetch, p95": us(fetch.p95_us or 0),
        "fetch, p99": us(fetch.p99_us or 0),
        "workers at work": percent(busy),
        "waiting": percent(case.share("wait") or 0),
        "made ahead now": f"{now} batches a worker",
    }
