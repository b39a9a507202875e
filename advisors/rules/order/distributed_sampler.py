"""Ranks that read the same data, or an order that never changes from epoch to epoch.

What it looks for
    In a run of several ranks, a map-style loader without a distributed sampler whose rank draws
    (nearly) the whole data set in an epoch (WHOLE, 90 %), or draws the same first batch as another
    rank. And, with one rank or several: a sampler that should shuffle, whose first batch is the
    same in 3 epochs or more (SAME_EPOCHS).

Why it matters
    Without a distributed sampler N ranks do the same work N times: an epoch takes N times as long
    as it need, and where they draw the same batches, averaging their gradients adds nothing.
    Without set_epoch, DistributedSampler draws the same order in every epoch.

What to change
    DistributedSampler(dataset), and sampler.set_epoch(epoch) at the start of each epoch.

When not to
    Evaluation where each rank is meant to see everything. Lightning and Accelerate insert the
    sampler and call set_epoch themselves; then the samples drawn show it, and this rule is silent.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....profiler.store.run.run import LoaderRun, ProcessRun
from ...case.advice import SAME, Outcome
from ...case.case import Case
from ...case.code_text import Source, identifier
from ...code.batched.drawn import samples_an_epoch
from ...code.loader_code import loader_code
from ...code.loader_form import form_of
from ...schema.figures import count, percent
from ...schema.report_model import Range

NAME = "distributed-sampler"
KIND = "correctness"
EFFORT = "a few lines"

# Samples a rank draws in an epoch, of the data set: sharded it is 1 / ranks.
WHOLE = 0.9
# Two epochs may begin alike by chance only in tiny data sets; three alike are no chance.
SAME_EPOCHS = 3
# A batch of fewer indices repeats by chance.
LEAST_BATCHES = 4


def examine(case: Case) -> Iterator[Outcome]:
    config = case.config
    if (
        case.loader.kind != "dataloader"
        or config.get("dataset_kind") != "map"
        or config.get("dispatched")
    ):
        return
    told = _sampler_names(case)
    distributed = any("Distributed" in name or "Shard" in name for name in told)
    shuffles = any(name.endswith("RandomSampler") for name in told)
    if (case.process.world_size or 1) > 1 and not distributed:
        yield from _unsharded(case, shuffles)
        return
    if distributed or shuffles:
        yield from _same_order(case, distributed)


def _sampler_names(case: Case) -> list[str]:
    names = [case.config.get("sampler"), case.config.get("batch_sampler")]
    for part in (case.inspection.sampler, case.inspection.batch_sampler):
        names += part.bases if part is not None else ()
    return [name for name in names if isinstance(name, str)]


def _unsharded(case: Case, shuffles: bool) -> Iterator[Outcome]:
    ranks = case.process.world_size or 1
    length, drawn = case.config.get("dataset_len"), samples_an_epoch(case)
    whole = (
        isinstance(length, int) and length > ranks and drawn is not None and drawn >= WHOLE * length
    )
    alike = _same_first_batches(case)
    # Reading in order is how evaluation is done, too: only the loader with the most batches is
    # surely for training.
    if not shuffles and case.loader.count < max(loader.count for loader in case.process.loaders):
        return
    if not whole and not alike:
        return
    evidence = {
        "ranks": str(ranks),
        "sampler": str(case.config.get("sampler")).rpartition(".")[2] or "none",
    }
    if drawn is not None and isinstance(length, int) and length:
        evidence["drawn by this rank an epoch"] = (
            f"{count(drawn)} samples, {percent(drawn / length)} of the data set"
        )
    if alike:
        evidence["first batches equal to another rank's"] = f"{alike} epochs"
    change = case.change(code=_code(case), predicted=Range(*[float(ranks)] * 3) if whole else SAME)
    yield change.advise(
        title="Give each rank its own part of the data: DistributedSampler",
        why=(
            f"{ranks} ranks each go through "
            + ("the same batches" if alike else "the whole data set")
            + f": an epoch takes {ranks} times the work it need. The factor is in different "
            "samples a second."
        ),
        evidence=evidence,
        caveat="Not where each rank is meant to see everything, as in evaluation, or trains a "
        "model of its own. Each rank's epoch gets shorter.",
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
    return (
        f"sampler = DistributedSampler(dataset, shuffle={bool(form.shuffle)}, drop_last={last})\n"
        f"{loader_code(case, sampler=Source('sampler'))}\n\n"
        "# at the start of each epoch:\n"
        "#     sampler.set_epoch(epoch)\n"
    )


def _set_epoch(case: Case) -> str:
    """By the way from the loader to its sampler, through what wraps it; Accelerate's loaders pass
    it on themselves."""
    path = case.config.get("sampler_path")
    steps = path.split(".") if isinstance(path, str) else ["sampler"]
    if case.config.get("made_by") in ("accelerate", "transformers") or not all(
        map(str.isidentifier, steps)
    ):
        steps = []
    return f"# at the start of each epoch:\n#     {'.'.join(['loader', *steps])}.set_epoch(epoch)\n"


def _first_digests(loader: LoaderRun) -> dict[int, int]:
    """Digest of the first batch, by epoch: the indices it was drawn with."""
    batches = loader.batches
    rows = np.flatnonzero(batches["digest"] >= 0)
    found: dict[int, int] = {}
    for epoch, digest in zip(
        batches["epoch"][rows].tolist(), batches["digest"][rows].tolist(), strict=True
    ):
        found.setdefault(epoch, digest)
    return found


def _same_first_batches(case: Case) -> int:
    """Epochs in which another rank drew the very same first batch; 0 unless that is so in all that
    can be compared."""
    own = _first_digests(case.loader)
    best = 0
    for _, loader in case.peers:
        other = _first_digests(loader)
        common = own.keys() & other.keys()
        if common and all(own[epoch] == other[epoch] for epoch in common):
            best = max(best, len(common))
    return best


def _same_order(case: Case, distributed: bool) -> Iterator[Outcome]:
    digests = _first_digests(case.loader)
    long_enough = case.loader.epochs["batches"].max(initial=0) >= LEAST_BATCHES
    if len(digests) < SAME_EPOCHS or len(set(digests.values())) != 1 or not long_enough:
        return
    if distributed and _in_order(case, next(iter(digests.values())), case.process):
        return
    if distributed:
        title = "Call sampler.set_epoch(epoch) at the start of each epoch"
        why = "DistributedSampler draws the same order in every epoch unless it is told the epoch."
        code = _set_epoch(case)
    else:
        title = "Shuffle anew in each epoch"
        why = (
            "The loader shuffles, but its generator is seeded anew before each epoch: the order "
            "is always the same."
        )
        code = (
            "# seed the generator once, before the first epoch, and hand the same one to the "
            "loader\n"
        )
    yield case.change(code=code).advise(
        title=title,
        why=why,
        evidence={"epochs that begin with the same batch": f"{len(digests)} of {len(digests)}"},
        caveat="Training sees the data in another order then: results differ in their last digits.",
    )


def _in_order(case: Case, digest: int, process: ProcessRun) -> bool:
    """Whether the first batch is that of a distributed sampler without shuffling: every N-th sample
    from the start."""
    from ....profiler.record.inspect.digests import digest_of_indices

    ranks, size, length = process.world_size or 1, case.batch_size, case.config.get("dataset_len")
    if size is None or not isinstance(length, int):
        return True  # it cannot be told, so it is not claimed
    own = process.rank or 0
    return digest == digest_of_indices(list(range(own, length, ranks))[:size])
