"""Drawing indices is slow, or holds much memory.

What it looks for
    Index drawing that takes at least 10 % of the step (INDEX_SHARE), permutations at the start of
    epochs included. A sampler that makes samples to draw their indices. Lines of a sampler of your
    own that take 40 % of drawing, by what their source says (see hot-function).

Why it matters
    A sampler yields one Python number per sample, in the training process, inside next(): workers
    do not help. For large data sets torch's shuffle first makes a list of all indices: some 40
    bytes and 0.1 µs per sample, every epoch.

What to change
    Draw a whole epoch's order at once as an array, and cut batches out of it. Replace a search by
    a lookup: a dict, or np.searchsorted in cumulative sums.

When not to
    If fetching takes longer than microseconds, it is mostly negligible. A
    sampler of your own has an order for a reason: keep that order, and only make it an array at
    once.
"""

from typing import Any

from ...case.advice import Advice, Outcomes
from ...case.case import Case
from ...case.code_text import Source, identifier, last_part
from ...case.fetching import per_sample
from ...code.by_hand import make_cheaper, shaped
from ...code.hot.functions import FEW_SAMPLES, SAMPLES_MADE, outermost, unknown
from ...code.hot.own_lines import own_lines
from ...code.hot.shaped_lines import better_lines, worst_shape
from ...code.loader_code import DROP, loader_code
from ...code.loader_form import form_of
from ...code.shapes import ONE_BY_ONE
from ...code.template import code_from
from ...schema.evidence import count, percent, us
from ...schema.report_model import CodeStage, Range
from ...stacks.code_summary import wilson
from ...stacks.source_lines import SourceLines
from ...whatif.costs import DRAWN_AS_ARRAY

NEEDS = "prediction"

INDEX_SHARE = 0.10
# What is left of drawing a batch: an array is cut and made a list, 10 to 20 ns per index, where
# torch's own samplers take 60 to 160, from one generator to the next, and Python code of one's own
# 0.2 to 10 µs. What is drawn once per epoch is separate: see costs.DRAWN_AS_ARRAY.
LEFT_TORCH = (0.08, 0.35)
LEFT_OWN = (0.02, 0.3)
OWN_US = 10.0
_TORCH = (
    "RandomSampler",
    "SequentialSampler",
    "BatchSampler",
    "DistributedSampler",
    "WeightedRandomSampler",
)

MAKES_SAMPLES = 0.5

_SHUFFLED = "np.random.default_rng((seed, epoch)).permutation(len(dataset))"
_STRAIGHT = "np.arange(len(dataset))"
_CUT = (
    "draw the order of an epoch as one array, and yield\n"
    "# order[begin : begin + batch_size].tolist() for each batch (as a batch_sampler)\n"
)


def examine(case: Case) -> Outcomes:
    share, mean = case.share("index"), case.mean_us("index")
    if case.meets("stream") or share is None or mean is None or share < INDEX_SHARE:
        return
    name, own = _sampler(case)
    stage = case.code_stage("index", FEW_SAMPLES)
    if own and stage is not None:
        made = _made(stage)
        if made.mid >= MAKES_SAMPLES:
            yield _reads_samples(case, name, made)
            return
        parts = filter(None, (case.inspection.sampler, case.inspection.batch_sampler))
        lines = own_lines(stage, parts, SourceLines(case.process, case.loader))
        worst = worst_shape(stage, lines, unknown(stage))
        if worst is not None and worst[1].key != ONE_BY_ONE:
            yield shaped(case, "index", *worst, {})
            return
        if group := better_lines(stage, lines):
            yield make_cheaper(case, "index", group, {})
            return
    # Of what takes longer still, no more is left.
    slow = max(1.0, (per_sample(case, mean) or 0.0) / OWN_US)
    drawn: dict[str, Any] = (
        {"index": tuple(left / slow for left in LEFT_OWN)}
        if own
        else {"index": LEFT_TORCH, "draw": DRAWN_AS_ARRAY}
    )
    yield case.change(code=_code(case, name), **drawn).advise(
        "Draw all indices of an epoch at once, as an array",
        f"{name} takes {us(mean)} to draw a batch's indices, {percent(share)} of the step. That "
        f"happens in the training process, inside next(), where workers cannot help.",
        {
            "drawing a batch's indices": us(mean),
            "of the step": percent(share),
            "samples": count(case.dataset_len),
            "sampler": name,
        },
        caveat="The order differs from torch's shuffle with the same seed. With several ranks each "
        "needs its own part."
        if form_of(case).whole
        else f"What {name} draws is specific to it: only you can write it as an array.",
    )


def _made(stage: CodeStage) -> Range:
    """Of drawing indices, the part that goes by in making samples."""
    made = outermost(stage, lambda node: node.own and node.function.endswith(SAMPLES_MADE))
    samples = sum(node.samples for node in made)
    low, high = wilson(samples, stage.samples)
    return Range(low, samples / stage.samples, high)


def _reads_samples(case: Case, name: str, made: Range) -> Advice:
    code = (
        f"# By hand, in {identifier(name, 'the sampler')}: keep what it asks samples for (a "
        "length, a size, a label) in a list or\n# file, made once before training, and draw from "
        "that.\n"
    )
    return case.change(code=code, index=(1 - made.high, 1 - made.low)).advise(
        "Draw from stored sizes or labels, not from the samples themselves",
        f"{name} makes samples to draw their indices: {percent(made.mid)} of drawing goes by in "
        "__getitem__, in the training process, where workers cannot help. The workers make them "
        "again.",
        {"drawing a batch's indices": us(case.mean_us("index")), "of it": percent(made.mid)},
    )


def _sampler(case: Case) -> tuple[str, bool]:
    """(the name of what draws the indices, whether it is the user's own)."""
    batches, single = case.config.get("batch_sampler"), case.config.get("sampler")
    qualified = single if last_part(str(batches)) == "BatchSampler" or batches is None else batches
    if not isinstance(qualified, str):
        return "the sampler", True
    name = last_part(qualified)
    return name, not (qualified.startswith("torch.utils.data.") and name in _TORCH)


def _code(case: Case, name: str) -> str:
    form = form_of(case)
    if not form.whole:
        return f"# By hand, in {identifier(name, 'the sampler')}: {_CUT}"
    drop = ", drop_last=True" if case.config.get("drop_last") is True else ""
    size = f"batch_size={case.batch_size or 64}{drop}"
    batches = Source(f"ArrayBatches(draw, len(dataset), {size})")
    changes = dict.fromkeys(("batch_size", "shuffle", "sampler", "drop_last"), DROP)
    order = _SHUFFLED if form.shuffle else _STRAIGHT
    then = f"{loader_code(case, batch_sampler=batches, **changes)}\n"
    return code_from("samplers", "ArrayBatches", "draw", then=then, ORDER=order)
