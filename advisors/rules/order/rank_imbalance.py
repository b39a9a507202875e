"""One rank's data takes longer than the others': they wait for it in every step.

What it looks for
    The same loader in several ranks whose batches cost 1.3 times as much to make in one rank as in
    the cheapest (SPREAD), where that rank waits for data and the others, at the same pace, spend
    that time inside their steps: waiting for it in a collective operation. Only the slowest rank is
    told.

Why it matters
    Ranks exchange gradients in each step, so all run at the pace of the slowest. In the others it
    looks like slow communication, and nothing there shows the cause.

What to change
    Give each rank an equal share of the costly samples: sort or bucket by cost and deal them out,
    or make shards of equal size and equal kind.

When not to
    Where the slow rank's host is busy with something else, or its disk is slower: the data is not
    the cause then. Where a sampler shares the same data out at random, no rank's samples cost more
    than another's: that is said instead.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...case.advice import Advice, Outcome
from ...case.case import Case
from ...code.template import code_from
from ...schema.figures import figure, us
from ...schema.rank_model import RankFigures

NAME = "rank-imbalance"
KIND = "speed"
EFFORT = "a few lines"

# Between the ranks' cost a batch: docs/causes.md, "Ranks of unlike cost".
SPREAD = 1.3
# Of the slow rank's additional waiting, what the cheapest rank must spend more inside its step.
SEEN_IN_STEP = 0.5
# Additional waiting below this part of a step holds nobody up.
LEAST_WAIT = 0.05
# Ranks of one run step together; if they do not, they do not wait for each other.
SAME_PACE = 0.1
LEAST_BATCHES = 20


def examine(case: Case) -> Iterator[Outcome]:
    ranks = case.report.ranks
    if case.whatif is None or ranks is None:
        return
    own = next(
        (found for each in ranks.each if each.rank == case.loader.rank and (found := _means(each))),
        None,
    )
    others = [
        found
        for each in ranks.each
        if each.rank != case.loader.rank and (found := _means(each)) is not None
    ]
    if own is None or not others:
        return
    cost, wait, compute = own
    cheapest = min(others, key=lambda each: each[0])
    if cost < max(each[0] for each in others) or cost < SPREAD * cheapest[0]:
        return
    step, its_step = wait + compute, cheapest[1] + cheapest[2]
    more_wait = wait - cheapest[1]
    if abs(step - its_step) > SAME_PACE * step or more_wait < LEAST_WAIT * step:
        return
    if cheapest[2] - compute < SEEN_IN_STEP * more_wait:
        return
    if case.config.get("shuffle") is True and case.config.get("replicas") == ranks.world_size:
        yield _not_the_samples(case, cost, cheapest[0])
        return
    mean = (cost + sum(each[0] for each in others)) / (1 + len(others))
    # All at the mean at best; workers of other hosts may differ in speed, too.
    balanced = (mean / cost, (1 + mean / cost) / 2)
    code = code_from("samplers", "EvenCosts", then=_USE)
    yield case.change(code=code, fetch=balanced, collate=balanced).advise(
        title="Deal the costly samples out evenly among the ranks",
        why=(
            f"A batch takes this rank {us(cost)} to make, and the cheapest rank {us(cheapest[0])}. "
            f"The others wait for it inside their steps, {us(more_wait)} each time."
        ),
        evidence={
            "making a batch, this rank": us(cost),
            "the cheapest rank": us(cheapest[0]),
            "spread": f"{figure(cost / cheapest[0])} times",
            "waiting more than the cheapest": f"{us(more_wait)} a step",
        },
        caveat="Check first that this rank's host is no slower than the others'. `costs` is what "
        "you know of each sample: its length, its size on disk.",
    )


def _not_the_samples(case: Case, cost: float, cheapest: float) -> Advice:
    return case.change(code="# leave the sampler as it is\n").would_not_help(
        title="Dealing the samples out otherwise: they are not what is slow",
        why=(
            f"A batch takes this rank {us(cost)} to make, and the cheapest rank {us(cheapest)}. "
            "All draw from the same data at random, so its samples cost no more than theirs: its "
            "host, the disk it reads from, or what its code does differently is slower."
        ),
        evidence={"making a batch, this rank": us(cost), "the cheapest rank": us(cheapest)},
    )


def _means(rank: RankFigures) -> tuple[float, float, float] | None:
    """(making, waiting, computing) a steady batch, mean µs."""
    mean = rank.mean_us
    if rank.steady_batches < LEAST_BATCHES or not {"fetch", "wait", "compute"} <= mean.keys():
        return None
    return mean["fetch"] + mean.get("collate", 0.0), mean["wait"], mean["compute"]


_USE = """\
# sampler = EvenCosts([len(text) for text in dataset.texts], rank, world_size)
# shuffle groups of batches, the same way in each rank, to keep training random
"""
