"""How many batches each worker makes ahead: more against uneven batches.

What it looks for
    Fetch times that vary (p95/p50 above 3 or p99/p50 above 6) so that slow batches take longer than
    a step of the loop, while the workers have time left (busy less than 90 % of the time,
    ALWAYS_BUSY) and the loop waits now and then.

Why it matters
    A queue evens out bad moments; it adds no capacity. If the workers are always busy, a longer
    queue only holds more memory: the rate stays as it is.

What to change
    Set prefetch_factor to the number named: the smallest within 2 % of the best, by the what-if
    model.

When not to
    With workers that are always busy, or with batches so large that num_workers × prefetch_factor
    of them do not fit.
"""

from ...case.advice import Outcomes, smallest
from ...case.case import Case
from ...case.workers import ALWAYS_BUSY, fetch_times, slow_batches, workers_busy
from ...schema.evidence import Evidence, count, figure, percent, size
from ...schema.gains import LEAST_GAIN

EFFORT = "one argument"
NEEDS = "prediction workers"

CANDIDATES = (4, 8, 16, 32)
# Below this waiting the queue is deep enough.
LEAST_WAITING = 0.02


def examine(case: Case) -> Outcomes:
    busy, waiting = workers_busy(case), case.share("wait")
    if busy is None or waiting is None:
        return
    now = case.loader.prefetch_factor
    evidence: Evidence = {
        **fetch_times(case),
        "waiting": percent(waiting),
        "made ahead now": count(now, "batches per worker"),
    }
    if waiting >= LEAST_WAITING and busy < ALWAYS_BUSY and slow_batches(case):
        options = {n: case.change(prefetch_factor=n) for n in CANDIDATES if n > now}
        pick, best = smallest(options or {now: case.change()})
        if best > LEAST_GAIN:
            fetch = case.report.stages["fetch"]
            yield options[pick].advise(
                f"Let each worker make {pick} batches ahead",
                "Fetching is uneven: slow batches take "
                f"{figure((fetch.p99_us or 0) / (fetch.p50_us or 1))} times as long as the median. "
                f"The workers are idle {percent(1 - busy)} of the time, so a longer queue absorbs "
                "this.",
                evidence,
                caveat=_memory(case, pick - now),
            )
            return
    if busy >= ALWAYS_BUSY and case.report.verdict == "input-bound":
        usual = max(2 * now, 4)
        change = case.change(prefetch_factor=usual)
        if not change.gains:
            yield change.would_not_help(
                f"The workers are busy {percent(busy)} of the time, so a longer queue stays empty. "
                f"{_memory(case, usual - now) or ''}".rstrip(),
                evidence,
            )


def _memory(case: Case, more: int) -> str | None:
    held = more * case.num_workers * (case.report.bytes_per_batch or 0.0)
    return f"It holds {size(held)} more in shared memory." if held else None
