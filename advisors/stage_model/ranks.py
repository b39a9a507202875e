"""The ranks of a job side by side: the spread of each stage, and the rank that the others wait for.

Ranks that average gradients step together. The one whose data is late waits for it inside `next()`;
the others come to the collective operation in time and wait there, inside their steps. So the slow
rank is the one that waits for data the most, never one that is seen waiting in an all-reduce.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from ...profiler.store.lanes.compacted import Totals
from ...profiler.store.run.loader_summary import LoaderSummary
from ...profiler.store.run.run import ProcessRun
from ..schema.rank_model import RankFigures, Ranks, SlowestRank, Spread

STAGES = {
    "wait": "wait_ns",
    "stall": "stall_ns",
    "compute": "compute_ns",
    "index": "index_ns",
    "fetch": "fetch_ns",
    "collate": "collate_ns",
    "pack": "pack_ns",
    "unpack": "unpack_ns",
    "pin": "pin_ns",
}
# What a loader's waiting may come from, and whether workers do it side by side.
_MAKING = {
    "index": False,
    "fetch": True,
    "collate": True,
    "pack": True,
    "unpack": False,
    "pin": False,
}

LEAST_STEADY = 10  # batches, to be compared
# Of a step, what a rank must wait longer than the others: as the verdict's "compute-bound".
LEAST_LONGER = 0.05
# Of the standard error of its mean, that waiting must lie above: a single hiccup makes no slow
# rank.
CHANCE = 3.0
# Steps of ranks that wait for each other take equally long.
SAME_PACE = 0.1
# A stage is the cause if it takes so many times as long as in the others, and its difference is so
# much of the waiting.
CAUSE_FACTOR, CAUSE_PART = 1.2, 0.25

Member = tuple[ProcessRun, LoaderSummary]


def ranks_of(members: Sequence[Member]) -> Ranks:
    """One loader, as the processes of these ranks had it, each rank once."""
    each = tuple(
        sorted((_figures(process, loader) for process, loader in members), key=lambda one: one.rank)
    )
    worlds = [process.world_size for process, _ in members if process.world_size]
    return Ranks(
        world_size=max(worlds, default=None),
        hosts=len({(process.host, process.boot_id) for process, _ in members}),
        spread=_spreads(each),
        each=each,
        slowest=slowest_of(each, {process.rank or 0: loader for process, loader in members}),
    )


def _figures(process: ProcessRun, loader: LoaderSummary) -> RankFigures:
    assert process.rank is not None
    workers = loader.facts.get("num_workers")
    means = ((stage, loader.mean(column)) for stage, column in STAGES.items())
    return RankFigures(
        rank=process.rank,
        host=process.host,
        pid=process.pid,
        batches=loader.batches,
        steady_batches=loader.steady,
        workers=workers if isinstance(workers, int) else None,
        mean_us={stage: mean / 1e3 for stage, mean in means if mean is not None},
        finished=process.state != "crashed",
    )


def _spreads(each: Iterable[RankFigures]) -> dict[str, Spread]:
    found = {}
    for stage in STAGES:
        known = [(one.mean_us[stage], one.rank) for one in each if stage in one.mean_us]
        if known:
            low, high = min(known), max(known, key=lambda pair: (pair[0], -pair[1]))
            found[stage] = Spread(
                low[0], low[1], median(value for value, _ in known), high[0], high[1]
            )
    return found


def slowest_of(
    each: Sequence[RankFigures], loaders: Mapping[int, LoaderSummary]
) -> SlowestRank | None:
    """The rank that waits for its data longer than the others by a part of its step that counts,
    and by more than chance makes of it; None if none does. `loaders` by rank."""
    known = [
        one
        for one in each
        if one.steady_batches >= LEAST_STEADY and {"wait", "compute"} <= one.mean_us.keys()
    ]
    if len(known) < 2:
        return None
    lost = "stall" if all("stall" in one.mean_us for one in known) else "wait"
    slow = max(known, key=lambda one: (one.mean_us[lost], -one.rank))
    others = [one for one in known if one is not slow]
    others_lost = median(one.mean_us[lost] for one in others)
    step = _step(slow)
    longer = slow.mean_us[lost] - others_lost
    chance = CHANCE * _error_us(loaders[slow.rank].columns[STAGES[lost]])
    if step <= 0 or longer < max(LEAST_LONGER * step, chance):
        return None
    cause = _cause(slow, others, longer)
    own, theirs = (
        (slow.mean_us[cause], _median(others, cause)) if cause is not None else (None, None)
    )
    return SlowestRank(
        rank=slow.rank,
        lost_us=slow.mean_us[lost],
        others_lost_us=others_lost,
        step_us=step,
        held_up=_at_one_pace(slow, others, loaders),
        cause=cause,
        cause_us=own,
        others_cause_us=theirs,
    )


def _at_one_pace(
    slow: RankFigures, others: Sequence[RankFigures], loaders: Mapping[int, LoaderSummary]
) -> bool:
    """By their mean step, or by their usual one: a loader that looks a batch ahead, as
    Accelerate's, asks for an epoch's second batch at once, and a fast rank then waits two steps in
    one, of which the first is no steady one."""

    def alike(own: float, theirs: Iterable[float]) -> bool:
        return abs(median(theirs) - own) <= SAME_PACE * own

    usual = {
        one.rank: sum(
            loaders[one.rank].columns[STAGES[part]].quantiles(0.5)[0]
            for part in ("wait", "compute")
        )
        for one in (slow, *others)
    }
    return alike(_step(slow), map(_step, others)) or alike(
        usual[slow.rank], (usual[one.rank] for one in others)
    )


def _error_us(totals: Totals) -> float:
    """The standard error of the mean, from the histogram."""
    values, counts = totals.midpoints()
    known = int(counts.sum())
    if known < 2:
        return 0.0
    mean = float((values * counts).sum()) / known
    return math.sqrt(float((counts * (values - mean) ** 2).sum()) / (known - 1) / known) / 1e3


def _step(one: RankFigures) -> float:
    return one.mean_us["wait"] + one.mean_us["compute"]


def _median(others: Iterable[RankFigures], stage: str) -> float | None:
    known = [one.mean_us[stage] for one in others if stage in one.mean_us]
    return median(known) if known else None


def _cause(slow: RankFigures, others: Sequence[RankFigures], longer: float) -> str | None:
    """The stage that adds most to what this rank waits more than the others."""
    found: Mapping[str, float] = {}
    for stage, in_workers in _MAKING.items():
        own, theirs = slow.mean_us.get(stage), _median(others, stage)
        if own is not None and theirs is not None and own >= CAUSE_FACTOR * theirs:
            more = (own - theirs) / (max(1, slow.workers or 1) if in_workers else 1)
            if more >= CAUSE_PART * longer:
                found = {**found, stage: more}
    return max(found, key=lambda stage: found[stage]) if found else None
