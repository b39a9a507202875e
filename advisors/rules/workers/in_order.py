"""Slow batches that block ready ones: in_order=False.

What it looks for
    Waiting while later batches lay ready (at least 20 % of all waiting, BLOCKED_SHARE), with fetch
    times that vary (p95/p50 above 3 or p99/p50 above 6) so that slow batches take longer than a
    step of the loop, and workers that have idle room (at work less than 90 % of the time,
    ALWAYS_BUSY).

Why it matters
    A DataLoader hands batches over in the order in which they were asked for. One slow batch holds
    up all that are ready behind it, and the workers that made them get nothing new to do.

What to change
    in_order=False (torch 2.6 or newer): ready batches are handed over as they come.

When not to
    The order of batches then depends on timing: two runs with the same seed differ, and slow
    samples come late, which skews what training sees where slowness and content go together.
    Workers that are always busy gain nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...case.advice import Outcome
from ...case.case import Case
from ...case.evidence import ALWAYS_BUSY, slow_batches, torch_version, workers_busy
from ...schema.figures import percent, us
from ...schema.gains import LEAST_GAIN

NAME = "in-order"
KIND = "speed"
EFFORT = "one argument"

# Part of all waiting during which a later batch lay ready. Below it, little is to be won by taking
# that one.
BLOCKED_SHARE = 0.2
FIRST_TORCH = (2, 6)


def examine(case: Case) -> Iterator[Outcome]:
    if case.num_workers < 2 or case.whatif is None or case.config.get("in_order") is not True:
        return
    version = torch_version(case)
    if version is None or version < FIRST_TORCH:
        return
    busy, blocked = workers_busy(case), blocked_share(case)
    if busy is None or blocked is None or blocked < BLOCKED_SHARE or not slow_batches(case):
        return
    fetch = case.report.stages["fetch"]
    evidence = {
        "waiting while a later batch lay ready": percent(blocked),
        "fetch, median": us(fetch.p50_us or 0),
        "fetch, p95": us(fetch.p95_us or 0),
        "fetch, p99": us(fetch.p99_us or 0),
        "workers at work": percent(busy),
    }
    change = case.change(in_order=False)
    if busy >= ALWAYS_BUSY and change.predicted.mid < LEAST_GAIN:
        if case.report.verdict != "compute-bound":
            yield change.would_not_help(
                f"Slow batches do block ready ones, but the workers are busy {percent(busy)} of "
                "the time, so none of them would make more.",
                evidence,
            )
        return
    yield change.advise(
        title="Hand batches over as they become ready",
        why=f"{percent(blocked)} of the waiting passed while a later batch lay ready: slow batches "
        "block those behind them.",
        evidence=evidence,
        caveat="The order of batches then depends on timing: runs with the same seed differ, and "
        "slow samples come late, which skews what training sees.",
    )


def blocked_share(case: Case) -> float | None:
    """Part of all waiting after which a later batch lay ready; time to unpack and pin is not
    waiting for a batch."""
    batches = case.loader.batches
    wait = batches["wait_ns"].astype(np.float64)
    known = (wait >= 0) & (batches["ready"] >= 0)
    if case.report.waiting is None or not known.any():
        return None
    for stage in ("unpack_ns", "pin_ns"):
        wait -= batches[stage].clip(0)
    wait = np.where(known, wait.clip(0), 0)
    total = float(wait.sum())
    return float(wait[batches["ready"] > 0].sum()) / total if total > 0 else None
