"""Slow batches that block ready ones: in_order=False.

What it looks for
    Waiting while later batches were ready (at least 20 % of all waiting, BLOCKED_SHARE), with fetch
    times that vary (p95/p50 above 3 or p99/p50 above 6) so that slow batches take longer than a
    step of the loop.

Why it matters
    A DataLoader hands batches over in the order in which they were asked for. One slow batch holds
    up all that are ready behind it, and the workers that made them get nothing new to do.

What to change
    in_order=False (torch 2.6 or newer): ready batches are handed over as they come.

When not to
    The order of batches then depends on timing. Two runs with the same seed differ, and slow
    samples come late, which skews training if slowness and content go together. Workers that are
    always busy gain nothing.
"""

import re

from ...case.advice import Outcomes
from ...case.case import Case
from ...case.workers import fetch_times, slow_batches
from ...schema.evidence import percent
from ...stage_model.shares import blocked_share

EFFORT = "one argument"
NEEDS = "prediction workers"

# Part of all waiting during which a later batch was ready. Below it, taking that one gains little.
BLOCKED_SHARE = 0.2
FIRST_TORCH = (2, 6)


def examine(case: Case) -> Outcomes:
    version = re.match(r"(\d{1,4})\.(\d{1,4})", case.process.torch or "")
    if version is None or (int(version[1]), int(version[2])) < FIRST_TORCH:
        return
    blocked = blocked_share(case.loader.batches)
    if case.num_workers < 2 or case.config.get("in_order") is not True:
        return
    if blocked is None or blocked < BLOCKED_SHARE or not slow_batches(case):
        return
    evidence = {"waiting while a later batch was ready": percent(blocked), **fetch_times(case)}
    yield case.change(in_order=False).advise(
        "Hand over batches as they become ready",
        f"A later batch was ready during {percent(blocked)} of the wait: slow batches block those "
        "behind them.",
        evidence,
        caveat="The order of batches then depends on timing: runs with the same seed differ, and "
        "slow samples come late, which skews what training sees.",
    )
