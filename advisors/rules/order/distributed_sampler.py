"""Ranks that read the same data, or an order that never changes from epoch to epoch.

What it looks for
    In a run of several ranks, a map-style loader without a distributed sampler whose rank draws
    (nearly) the whole data set in an epoch (WHOLE, 90 %). And, with one rank or several: a sampler
    that should shuffle, whose first batch is the same in 3 epochs or more (SAME_EPOCHS).

Why it matters
    Without a distributed sampler N ranks do the same work N times: an epoch takes N times as long
    as necessary. If they draw the same batches, averaging their gradients adds nothing.
    Without set_epoch, DistributedSampler draws the same order in every epoch.

What to change
    DistributedSampler(dataset), and sampler.set_epoch(epoch) at the start of each epoch.

When not to
    In evaluation, if each rank is meant to see everything. Lightning and Accelerate insert the
    sampler and call set_epoch themselves. The samples drawn then show it, and this rule is silent.
"""

import numpy as np

from ....profiler.store.run.run import LoaderRun
from ...case.advice import Outcomes
from ...case.case import Case
from ...case.code_text import Source, identifier, last_part
from ...code.batched.drawn import samples_an_epoch
from ...code.loader_code import loader_code
from ...code.loader_form import form_of
from ...schema.evidence import count, percent
from ...schema.report_model import Range

KIND = "correctness"
NEEDS = "DataLoader map"

# Samples a rank draws in an epoch, of the data set: with sharding it is 1 / ranks.
WHOLE = 0.9
# Two epochs may begin alike by chance only in tiny data sets; three do not.
SAME_EPOCHS = 3
# A batch of fewer indices repeats by chance.
LEAST_BATCHES = 4

_SET_EPOCH = (
    "# at the start of each epoch, where the sampler is:\n#     loader.sampler.set_epoch(epoch)\n",
    "Call sampler.set_epoch(epoch) at the start of each epoch",
    "DistributedSampler draws the same order in every epoch unless set_epoch() is called.",
)
_SEEDED_ANEW = (
    "# seed the generator once, before the first epoch, and hand the same one to the loader\n",
    "Reshuffle in each epoch",
    "The loader shuffles, but its generator is seeded again before each epoch: the order is always "
    "the same.",
)


def examine(case: Case) -> Outcomes:
    if case.config.get("dispatched"):
        return
    names = [str(case.config.get(name)) for name in ("sampler", "batch_sampler")]
    for part in (case.inspection.sampler, case.inspection.batch_sampler):
        names += part.bases if part is not None else ()
    distributed = any("Distributed" in name or "Shard" in name for name in names)
    shuffles = any(name.endswith("RandomSampler") for name in names)
    if (case.process.world_size or 1) > 1 and not distributed:
        # Evaluation reads in order, too: only the loader with the most batches is surely training.
        most = max(loader.count for loader in case.process.loaders)
        if shuffles or case.loader.count >= most:
            yield from _unsharded(case)
    elif distributed or shuffles:
        yield from _same_order(case, distributed)


def _unsharded(case: Case) -> Outcomes:
    ranks = case.process.world_size or 1
    length, drawn = case.dataset_len or 0, samples_an_epoch(case)
    if length <= ranks or drawn is None or drawn < WHOLE * length:
        return
    yield case.change(code=_code(case), predicted=Range(*[float(ranks)] * 3)).advise(
        "Give each rank its own part of the data: DistributedSampler",
        f"{ranks} ranks each go through the whole data set: an epoch takes {ranks} times the "
        "necessary work. The factor is in different samples per second.",
        {
            "ranks": count(ranks),
            "sampler": last_part(str(case.config.get("sampler"))) or "none",
            "drawn by this rank per epoch": count(drawn, "samples"),
            "of the data set": percent(drawn / length),
        },
        caveat="Not if each rank is meant to see everything, as in evaluation, or trains a model "
        "of its own. Each rank's epoch gets shorter.",
    )


def _code(case: Case) -> str:
    form = form_of(case)
    if not form.plain:
        name = identifier(str(case.config.get("sampler")), "the sampler")
        return (
            f"# By hand: {name} draws in a way of its own. Let it draw the same order in every "
            "rank, and\n"
            "# hand out only this rank's part of it: order[rank::world_size]\n"
        )
    last = bool(case.config.get("drop_last"))
    return f"""\
sampler = DistributedSampler(dataset, shuffle={bool(form.shuffle)}, drop_last={last})
{loader_code(case, sampler=Source("sampler"))}

# at the start of each epoch:
#     sampler.set_epoch(epoch)
"""


def _first_digests(loader: LoaderRun) -> dict[int, int]:
    """Digest of the indices of the first batch, by epoch."""
    batches = loader.batches
    rows = np.flatnonzero(batches["digest"] >= 0)[::-1]
    return dict(zip(batches["epoch"][rows].tolist(), batches["digest"][rows].tolist(), strict=True))


def _same_order(case: Case, distributed: bool) -> Outcomes:
    digests = _first_digests(case.loader)
    long_enough = case.loader.epochs["batches"].max(initial=0) >= LEAST_BATCHES
    if len(digests) < SAME_EPOCHS or len(set(digests.values())) != 1 or not long_enough:
        return
    if distributed and case.config.get("shuffle") is not True:
        return
    code, title, why = _SET_EPOCH if distributed else _SEEDED_ANEW
    yield case.change(code=code).advise(
        title,
        why,
        {"epochs that begin with the same batch": count(len(digests), f"of {len(digests)}")},
        caveat="Training sees the data in another order then: results differ in their last digits.",
    )
