"""One rank's data takes longer than the others': they wait for it in every step.

What it looks for
    The same loader in several ranks whose batches cost 1.3 times as much to make in one rank as in
    the cheapest (SPREAD), where that rank waits for data and the others, at the same pace, spend
    that time inside their steps: waiting for it in a collective operation. Only the slowest rank
    gets this advice.

Why it matters
    Ranks exchange gradients in each step, so all run at the pace of the slowest. In the others it
    looks like slow communication, and nothing there shows the cause.

What to change
    Give each rank an equal share of the costly samples: sort or bucket by cost and deal them out,
    or make shards of equal size and equal kind.

When not to
    If the slow rank's host is busy with something else, or its disk is slower, the data is not the
    cause. If a sampler deals out the same data at random, no rank's samples cost more than
    another's: the report then says so instead.
"""

from __future__ import annotations

from typing import NamedTuple

from ...case.advice import Outcomes
from ...case.case import Case
from ...code.template import code_from
from ...schema.evidence import Evidence, figure, us

NEEDS = "prediction"

# Between the ranks' cost per batch: docs/causes.md, "Ranks of unlike cost".
SPREAD = 1.3
# Of the slow rank's additional waiting, what the cheapest rank must spend more inside its step.
SEEN_IN_STEP = 0.5
# Additional waiting below this part of a step holds nobody up.
LEAST_WAIT = 0.05
# Ranks of one run step together; if they do not, they do not wait for each other.
SAME_PACE = 0.1
LEAST_BATCHES = 20

_USE = """\
# sampler = EvenCosts([len(text) for text in dataset.texts], rank, world_size)
# shuffle groups of batches, the same way in each rank, to keep training random
"""


class _Means(NamedTuple):
    """Of one rank: mean µs of making, waiting and computing per steady batch."""

    cost: float
    wait: float
    compute: float


def examine(case: Case) -> Outcomes:
    ranks = case.report.ranks
    if ranks is None:
        return
    means: dict[int | None, _Means] = {
        each.rank: _Means(mean["fetch"] + mean.get("collate", 0.0), mean["wait"], mean["compute"])
        for each in ranks.each
        if each.steady_batches >= LEAST_BATCHES
        and {"fetch", "wait", "compute"} <= (mean := each.mean_us).keys()
    }
    own = means.pop(case.loader.rank, None)
    if own is None or not means:
        return
    least = min(means.values())
    if own < max(means.values()) or own.cost < SPREAD * least.cost:
        return
    step, more_wait = own.wait + own.compute, own.wait - least.wait
    if abs(step - least.wait - least.compute) > SAME_PACE * step or more_wait < LEAST_WAIT * step:
        return
    if least.compute - own.compute < SEEN_IN_STEP * more_wait:
        return
    why = f"A batch takes this rank {us(own.cost)} to make, and the cheapest rank {us(least.cost)}."
    evidence: Evidence = {
        "making a batch, this rank": us(own.cost),
        "the cheapest rank": us(least.cost),
    }
    if case.config.get("shuffle") is True and case.config.get("replicas") == ranks.world_size:
        yield case.change(code="# leave the sampler as it is\n").would_not_help(
            f"{why} All draw from the same data at random, so its samples cost no more than "
            "theirs: its host, its disk, or what its code does differently is slower.",
            evidence,
            title="Dealing out the samples differently: the samples are not what is slow",
        )
        return
    usual = (own.cost + sum(each.cost for each in means.values())) / (1 + len(means))
    # All at the mean at best; workers of other hosts may differ in speed, too.
    balanced = (usual / own.cost, (1 + usual / own.cost) / 2)
    code = code_from("samplers", "EvenCosts", then=_USE)
    yield case.change(code=code, fetch=balanced, collate=balanced).advise(
        "Spread the costly samples evenly over the ranks",
        f"{why} The others wait for it inside their steps, {us(more_wait)} each time.",
        {
            **evidence,
            "spread": figure(own.cost / least.cost, "times"),
            "waiting more than the cheapest": us(more_wait, "per step"),
        },
        caveat="Check first that this rank's host is no slower than the others'. `costs` is what "
        "you know of each sample: its length, its size on disk.",
    )
