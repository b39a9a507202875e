"""Drawing indices is slow, or holds much memory.

What it looks for
    Index drawing that takes at least 10 % of the step (INDEX_SHARE), or a shuffle of ten million
    samples or more (MANY_SAMPLES) whose permutation delays the first batch of each epoch.

Why it matters
    A sampler yields one Python number a sample, in the training process, inside next(): workers do
    not help. For large data sets torch's shuffle first makes a list of all indices: some 40 bytes
    and 0.1 µs a sample, every epoch.

What to change
    Draw a whole epoch's order at once as an array, and cut batches out of it.

When not to
    Below ten million samples and with fetching that takes longer than microseconds, it is
    negligible. A sampler of your own has an order for a reason: keep that order, and only make it
    an array at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...case.advice import Outcome
from ...case.case import Case
from ...case.code_text import Source, identifier
from ...code.loader_code import DROP, loader_code
from ...code.loader_form import form_of
from ...code.template import code_from, definitions
from ...schema.figures import count, percent, us
from ...stage_model.verdict import first_of_epoch
from ...whatif.costs import DRAWN_AS_ARRAY

NAME = "sampler"
KIND = "speed"
EFFORT = "a few lines"

INDEX_SHARE = 0.10
MANY_SAMPLES = 10_000_000  # docs/causes.md, "Permutations"
FIRST_SHARE = 0.05
# What is left of drawing a batch: an array is cut and made a list, 10 to 20 ns an index, where
# torch's own samplers take 60 to 160, from one generator to the next, and Python code of one's own
# 0.2 to 10 µs. What is drawn once an epoch is told apart: see costs.DRAWN_AS_ARRAY.
LEFT_TORCH = (0.08, 0.35)
LEFT_OWN = (0.02, 0.3)
_TORCH = (
    "RandomSampler",
    "SequentialSampler",
    "BatchSampler",
    "DistributedSampler",
    "WeightedRandomSampler",
)

_SHUFFLED = "np.random.default_rng((seed, epoch)).permutation(len(dataset))"
_STRAIGHT = "np.arange(len(dataset))"


def examine(case: Case) -> Iterator[Outcome]:
    if case.whatif is None or case.config.get("dataset_kind") == "iterable":
        return
    share, mean = case.share("index"), case.mean_us("index")
    first = first_share(case)
    length = case.config.get("dataset_len")
    long = (
        isinstance(length, int)
        and length >= MANY_SAMPLES
        and first is not None
        and first >= FIRST_SHARE
    )
    if share is None or mean is None or not (share >= INDEX_SHARE or long):
        return
    name, own = _sampler(case)
    evidence = {"drawing indices": f"{us(mean)} a batch, {percent(share)} of the step"}
    if first is not None:
        evidence["of it, at the start of epochs"] = f"{percent(first)} of the step"
    if isinstance(length, int):
        evidence["samples"] = count(length)
    evidence["sampler"] = name
    drawn: dict[str, Any] = (
        {"index": LEFT_OWN} if own else {"index": LEFT_TORCH, "draw": DRAWN_AS_ARRAY}
    )
    yield case.change(code=_code(case, name), **drawn).advise(
        title="Draw the indices of an epoch at once, as an array",
        why=f"{name} takes {us(mean)} to draw a batch's indices, {percent(share)} of the step. It "
        "is done in the training process, inside next(), where workers cannot help.",
        evidence=evidence,
        caveat=f"What {name} draws is its own: only you can write it as an array."
        if not form_of(case).whole
        else "The order differs from torch's shuffle with the same seed. With several ranks each "
        "needs its own part.",
    )


def _sampler(case: Case) -> tuple[str, bool]:
    """(the name of what draws the indices, whether it is the user's own)."""
    for key in ("batch_sampler", "sampler"):
        told = case.config.get(key)
        if isinstance(told, str):
            name = told.rpartition(".")[2]
            if key == "sampler" or name != "BatchSampler":
                torch = told.startswith("torch.utils.data.") and name in _TORCH
                return name, not torch
    return "the sampler", True


def first_share(case: Case) -> float | None:
    """Part of all steps' time spent drawing the first batch of each epoch: a permutation is made
    there."""
    batches = case.loader.batches
    index = batches["index_ns"]
    known = first_of_epoch(batches["epoch"]) & (index >= 0)
    total, share = float(index[index >= 0].sum()), case.share("index")
    if not known.any() or not total or share is None:
        return None
    return float(index[known].sum()) / total * share


def _code(case: Case, name: str) -> str:
    form = form_of(case)
    size, last = case.batch_size or 64, case.config.get("drop_last") is True
    drop = ", drop_last=True" if last else ""
    if not form.whole:
        by_hand = (
            f"# By hand: write draw(epoch) so that it gives what {identifier(name, 'the sampler')} "
            "draws in an epoch,\n"
            "# as one array, and hand the loader\n"
            f"#     batch_sampler=ArrayBatches(draw, samples, batch_size={size}{drop})\n"
            "# with as many samples as that array has, in place of the sampler it has now."
        )
        return "\n\n".join(
            ["import numpy as np\n", definitions("samplers", "ArrayBatches"), f"{by_hand}\n"]
        )
    batches = Source(f"ArrayBatches(draw, len(dataset), batch_size={size}{drop})")
    changes = dict.fromkeys(("batch_size", "shuffle", "sampler", "drop_last"), DROP)
    order = _SHUFFLED if form.shuffle else _STRAIGHT
    then = f"{loader_code(case, batch_sampler=batches, **changes)}\n"
    return code_from("samplers", "ArrayBatches", "draw", then=then, ORDER=order)
