"""The ranks of a job side by side: the spread of each stage, and the rank that the others wait for.

Ranks that average gradients step together. The one whose data is late waits for it inside `next()`;
the others come to the collective operation in time and wait there, inside their steps. So the slow
rank is the one that waits for data the most, never one that is seen waiting in an all-reduce.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from ...profiler.store.run.loader_summary import LoaderSummary
from ...profiler.store.run.run import ProcessRun
from ..schema.rank_model import RankFigures, Ranks, SlowestRank, Spread

_IN_WORKERS = ("fetch", "collate", "pack")  # in parallel
# What a loader's waiting may come from.
_MAKING = ("index", *_IN_WORKERS, "unpack", "pin")
STAGES = {name: f"{name}_ns" for name in ("wait", "stall", "compute", *_MAKING)}

LEAST_STEADY = 10  # batches, to be compared
# Of a step, what a rank must wait longer than the others: as the verdict's "compute-bound".
LEAST_LONGER = 0.05
# Of the standard error of its mean, that waiting must lie above: a single hiccup makes no slow
# rank.
CHANCE = 3.0
# Steps of ranks that wait for each other take equally long.
SAME_PACE = 0.1
# A stage is the cause if it takes this many times as long as in the others, and its difference is
# at least this part of the waiting.
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
    return RankFigures(
        rank=process.rank,
        host=process.host,
        pid=process.pid,
        batches=loader.batches,
        steady_batches=loader.steady,
        workers=workers if isinstance(workers, int) else None,
        mean_us={
            stage: loader.columns[column].mean / 1e3
            for stage, column in STAGES.items()
            if column in loader.columns
        },
        finished=process.state != "crashed",
    )


def _spreads(each: Iterable[RankFigures]) -> dict[str, Spread]:
    found = {}
    for stage in STAGES:
        known = sorted((one.mean_us[stage], one.rank) for one in each if stage in one.mean_us)
        if known:
            high = max(known, key=lambda pair: (pair[0], -pair[1]))
            found[stage] = Spread(*known[0], median(value for value, _ in known), *high)
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
    others_lost, step = median(one.mean_us[lost] for one in others), _step(slow)
    longer = slow.mean_us[lost] - others_lost
    chance = CHANCE * loaders[slow.rank].columns[STAGES[lost]].error / 1e3
    if step <= 0 or longer < max(LEAST_LONGER * step, chance):
        return None
    cause = _cause(slow, others, longer)
    return SlowestRank(
        rank=slow.rank,
        lost_us=slow.mean_us[lost],
        others_lost_us=others_lost,
        step_us=step,
        held_up=_at_one_pace(slow, others, loaders),
        cause=cause,
        cause_us=slow.mean_us.get(cause or ""),
        others_cause_us=_median(others, cause or ""),
    )


def _at_one_pace(
    slow: RankFigures, others: Sequence[RankFigures], loaders: Mapping[int, LoaderSummary]
) -> bool:
    """By their mean step, or by their usual one. A loader that fetches a batch ahead, as
    Accelerate's, asks for an epoch's second batch at once; a fast rank then waits two steps in one,
    of which the first is no steady one."""

    def usual(one: RankFigures) -> float:
        columns = loaders[one.rank].columns
        return sum(columns[STAGES[part]].median for part in ("wait", "compute"))

    return any(
        abs(median(map(step, others)) - step(slow)) <= SAME_PACE * step(slow)
        for step in (_step, usual)
    )


def _step(one: RankFigures) -> float:
    return one.mean_us["wait"] + one.mean_us["compute"]


def _median(others: Iterable[RankFigures], stage: str) -> float | None:
    known = [one.mean_us[stage] for one in others if stage in one.mean_us]
    return median(known) if known else None


def _cause(slow: RankFigures, others: Sequence[RankFigures], longer: float) -> str | None:
    """The stage that adds most to what this rank waits more than the others."""
    found = {}
    for stage in _MAKING:
        own, theirs = slow.mean_us.get(stage), _median(others, stage)
        if own is not None and theirs is not None and own >= CAUSE_FACTOR * theirs:
            found[stage] = (own - theirs) / (slow.workers or 1 if stage in _IN_WORKERS else 1)
    most = max(found, key=lambda stage: found[stage], default=None)
    return most if most is not None and found[most] >= CAUSE_PART * longer else None
