"""One rank's data takes longer than the others': they wait for it in every step.

What it looks for
    The same loader in several ranks that step at one pace, of which one waits for its data longer
    than the others, because its batches take 1.3 times as long to fetch or to collate (SPREAD). The
    others spend that time inside their steps: waiting for it in a collective operation.

Why it matters
    Ranks exchange gradients in each step, so all run at the pace of the slowest. In the others it
    looks like slow communication, and nothing there shows the cause.

What to change
    Give each rank an equal share of the costly samples: sort or bucket by cost and deal them out,
    or make shards of equal size and equal kind.

When not to
    If the slow rank's host is busy with something else, or its disk is slower, the data is not the
    cause. If a sampler deals out the same data at random, no rank's samples cost more than
    another's, and this rule is silent.
"""

from ...case.advice import Outcomes
from ...case.case import Case
from ...schema.evidence import figure, us

NEEDS = "prediction"

_MAKING = ("fetch", "collate")
# Between the ranks' cost per batch: docs/causes.md, "Ranks of unlike cost".
SPREAD = 1.3

_CODE = """\
# By hand: sort the samples by what each costs, give each rank every so manyth of them (as many as
# there are ranks), and shuffle groups of batches, the same way in each rank.
"""


def examine(case: Case) -> Outcomes:
    ranks = case.report.ranks
    slow = ranks.slowest if ranks is not None else None
    if ranks is None or slow is None or slow.rank != case.loader.rank or not slow.held_up:
        return
    own, others = slow.cause_us, slow.others_cause_us
    if slow.cause not in _MAKING or own is None or others is None or own < SPREAD * others:
        return
    if case.config.get("shuffle") is True and case.config.get("replicas") == ranks.world_size:
        return  # all draw from the same data at random: its samples cost no more than theirs
    usual = (own + others * (len(ranks.each) - 1)) / len(ranks.each)
    # All at the mean at best; workers of other hosts may differ in speed, too.
    balanced = (usual / own, (1 + usual / own) / 2)
    longer = slow.lost_us - slow.others_lost_us
    yield case.change(code=_CODE, fetch=balanced, collate=balanced).advise(
        "Spread the costly samples evenly over the ranks",
        f"A batch takes this rank {us(own)} to {slow.cause}, and the others {us(others)}. They "
        f"wait for it inside their steps, {us(longer)} each time.",
        {
            "this rank": us(own),
            "the others": us(others),
            "spread": figure(own / others, "times"),
            "waiting more than the others": us(longer, "per step"),
        },
        caveat="Check first that this rank's host is no slower than the others'. What a sample "
        "costs follows from its length, or its size on disk.",
    )
