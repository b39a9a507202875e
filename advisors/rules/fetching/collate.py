"""A slow collate function: how samples become a batch.

What it looks for
    A collate_fn of your own that takes at least 20 % of the time of making a batch (MAKING_SHARE)
    and that the loop waits for (WAITING_SHARE of the waiting). Stack samples name the line that
    takes most, in it or in a function that it calls, and its source tells why: a tensor built from
    a list of arrays, a Python loop over values. Batches show padding to their longest sample.
    Of default_collate: samples that hold lists of numbers, which become a tensor for each place
    (MANY_NUMBERS), and batches so large that copying them is what takes the time (COPIED).

Why it matters
    torch.tensor([array, array, …]) looks at every number by itself: torch warns of it, and stacking
    first was measured 7 to 30 times as fast. A Python loop over values costs some 50 ns per value,
    copying less than 1 ns. Padding costs twice: in collating, and in computing on fillers.

What to change
    Stack arrays with np.stack and wrap the result with torch.from_numpy; replace loops by
    whole-array operations; put samples of like length into the same batch.

When not to
    If collating is a small part of making a batch. Buckets by length make the order of samples less
    random and give the batches more shapes.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from ....profiler.base.metadata import clean
from ....profiler.store.inspection import MAX_LEAVES, Part
from ...case.advice import Advice, Outcomes, Unmeasured
from ...case.case import Case
from ...case.code_text import Source
from ...case.fetching import waited_on
from ...code.better_calls import Better, better_call
from ...code.by_hand import grows, known_call, make_cheaper, shaped
from ...code.collating import done_per_sample
from ...code.hot.functions import LEAST_SAMPLES, STANDS_OUT, known
from ...code.hot.own_lines import OwnLine, own_lines
from ...code.hot.shaped_lines import most_itself
from ...code.loader_code import DROP, loader_code
from ...code.loader_form import collate_name, config_text, drawing_sampler, is_default_collate
from ...code.method import draws
from ...code.shapes import kinds_of, shape_of
from ...code.template import code_from
from ...schema.evidence import Evidence, percent, size, us
from ...stacks.source_lines import SourceLines
from ...stacks.stage_parts import parts_of
from ...stage_model.verdict import LITTLE_TO_GAIN

NEEDS = "DataLoader prediction"

MAKING_SHARE = 0.20
WAITING_SHARE = 0.15
PADDING_SHARE = 0.20  # docs/causes.md, "Padding"
# docs/causes.md, "Padding": 5.05 to 6.2 steps a second.
PADDED = 0.5, 0.9
# A loop's body costs some 50 ns per value where an array operation costs about one.
LOOPED = 0.03, 0.4
# A sample of 768 numbers, 16 a batch: 4 ms against 0.5 with torch.tensor in each sample, 0.03 with
# tensors made before.
_NUMBERS = Better(
    "",
    "Return tensors from the data set, not lists of numbers",
    "return torch.tensor(values), made once where they stay the same.",
    (0.01, 0.2),
)
MANY_NUMBERS = 16
# Bytes per µs: joining samples at this rate or faster is copying. Small samples reach a tenth of
# it, copies between buffers 2,000 to 10,000.
COPIED = 500.0

ONCE_SAVES = 0.9  # of the line's time: what is kept still has to be put together
_ONCE = Better(
    "",
    "Do this once for each sample, not in every batch",
    "do it for each sample before training, or in __init__ of the data set, and let __getitem__ "
    "return the result; here only put samples together.",
    (0.0, 1 - ONCE_SAVES),
)

# Where no line is known to take the time: values set in a loop, and a tensor of lists.
_LOOPS = re.compile(
    r"\bfor\b.*\]\s*[-+*/]?=[^=]|torch\.\w+\(\[\s*(?:list\(|[\w.\[\]]+\.tolist\(\))", re.DOTALL
)
_COPIES = re.compile(
    r"(?:return|[\w\s,.]+=)\s*torch\.(?:stack|cat)\([\w\s,=]*\)$"
)  # and nothing else
# A tensor made of a list, value by value; surely of arrays.
_OF_LIST = re.compile(r"[tT]ensor\((?:\w+\)|\[)")
_PADS = re.compile(r"\bpad_sequence\(|\bpad\(|\bnp\.pad\(|pad_token|padding", re.IGNORECASE)


def examine(case: Case) -> Outcomes:
    collate, making = case.mean_us("collate"), case.making_us
    function = config_text(case, "collate_fn")
    if collate is None or not making or function is None:
        return
    share, waited = collate / making, waited_on(case, "collate")
    if share < MAKING_SHARE:
        return
    # What is hardly waited for may still take the cores of what is.
    if waited < WAITING_SHARE and case.predict(collate=0.0).low < LITTLE_TO_GAIN:
        return
    if is_default_collate(function):
        yield from _default(case, collate)
        return
    part = case.inspection.collate
    if part is None or not part.call:
        yield Unmeasured(
            "collate_fn is slow, but its source was not recorded, so what to change is not known"
        )
        return
    padding, name, lines = _padding(case), collate_name(case), _hot_lines(case, part)
    evidence: Evidence = {
        "collating a batch": us(collate),
        "padding": percent(padding, "of the batch's values"),
    }
    once = _per_sample(lines)
    stage = case.code_stage("collate")
    hot = once or (most_itself(stage, lines) if stage else None)
    seen = known(stage, None) if stage else ()
    cause, source = _ONCE if once else None, "\n".join(part.call)
    takes = f"{name} takes {percent(share)} of the time of making a batch."
    if hot:
        cause, source = cause or _of_line(case, hot), hot.text
        if cause is None:
            shape = shape_of(hot.method, hot.line, held=kinds_of(hot.part))
            if shape is not None:
                yield shaped(case, "collate", hot, shape, evidence)
                return
            cause = better_call(hot.text, hot.call)
    if cause and hot:
        caveat = f"Compare its batches with those of {name} once: keep whatever else {name} does."
        yield replace(make_cheaper(case, "collate", hot, evidence, better=cause), caveat=caveat)
    elif seen and seen[0].share >= STANDS_OUT and not seen[0].family.waits:
        yield known_call(case, "collate", seen[0], collate, evidence)
    elif (padding or 0.0) > PADDING_SHARE and _PADS.search(source):
        yield case.change(code=_buckets(case), collate=PADDED).advise(
            "Batch samples of similar length together",
            takes,
            evidence,
            caveat="Batches will have more shapes, and the order of samples is less random.",
        )
    elif hot is None and _LOOPS.search(source):
        code = f"# By hand, in {name}: use np.stack, indices, masks; not single values and lists.\n"
        yield case.change(code=code, collate=LOOPED).advise(
            "Replace the Python loops and lists in collate_fn with array operations",
            takes,
            evidence,
        )
    else:
        yield _by_hand(case, collate)


def _default(case: Case, collate_us: float) -> Outcomes:
    """Of default_collate: samples that hold lists of numbers."""
    numbers = [leaf for leaf in case.inspection.leaves if leaf.shape == (case.batch_size,)]
    if len(numbers) < MANY_NUMBERS:
        yield from _large(case, collate_us)
        return
    at = clean(min(leaf.path.rpartition("[")[0] for leaf in numbers), 80)
    more = " or more" if len(case.inspection.leaves) >= MAX_LEAVES else ""
    yield case.change(code=f"# By hand: {_NUMBERS.do}\n", collate=_NUMBERS.left).advise(
        _NUMBERS.title,
        "default_collate makes a tensor of each place in the lists. "
        f"This batch has {len(numbers)}{more} of them in batch{at}.",
        {"collating a batch": us(collate_us)},
        caveat="The loop then gets one tensor, with a row for each sample, where it got a list.",
    )


def _large(case: Case, collate_us: float) -> Iterator[Advice]:
    """Of batches that take long to join because they are large."""
    leaf = max(case.inspection.leaves, key=lambda leaf: leaf.nbytes or 0, default=None)
    if leaf is None or not leaf.nbytes or leaf.nbytes < COPIED * collate_us or leaf.whole_255ths:
        return  # pictures that bytes would hold: h2d-dtype says so
    shape, name = " × ".join(map(str, leaf.shape or ())), f"batch{clean(leaf.path, 80)}"
    part = leaf.nbytes / max(leaf.nbytes, case.report.bytes_per_batch or 0.0)
    code = (
        f"# By hand: let __getitem__ return what {name} is made from, and make it in the loop, on\n"
        "# the device: a part that is used alone, a smaller dtype, a tensor that is expanded,\n"
        "# repeated or one-hot there.\n"
    )
    yield case.change(code=code, collate=(1 - part, 1.0)).advise(
        f"Put less into each batch: {name} takes {size(leaf.nbytes)}",
        f"Joining samples copies {size(leaf.nbytes)} into {name} ({leaf.dtype}, {shape}) for each "
        "batch, and that is what takes the time.",
        {"collating a batch": us(collate_us), "bytes per batch": size(leaf.nbytes)},
        by_hand=True,
    )


def _hot_lines(case: Case, part: Part) -> list[OwnLine]:
    """The lines of the user's that take most of it, the largest first."""
    stage = case.code_stage("collate", LEAST_SAMPLES)
    if stage is None:
        return []
    lines = SourceLines(case.process, case.loader)
    found = own_lines(stage, [Part(name=part.name, helpers=(part.call,))], lines)
    return [each for each in found if each.share.mid >= STANDS_OUT]


def _per_sample(lines: list[OwnLine]) -> OwnLine | None:
    """What collate_fn, or a function that it calls, does for each sample by itself, and need not do
    in every batch."""
    line = next((each for each in lines if done_per_sample(each.method, each.line)), None)
    functions = (each.method.function for each in lines)
    return None if any(each and draws(each) for each in functions) else line


def _of_line(case: Case, hot: OwnLine) -> Better | None:
    """What the line that takes most does with what the samples hold."""
    if _OF_LIST.search(hot.line):
        return better_call(hot.line, None)
    numbers = sum(each.kind == "number" for each in case.loader.looks.fields) >= MANY_NUMBERS
    return _NUMBERS if "default_collate(" in hot.line and numbers else None


def _by_hand(case: Case, collate_us: float) -> Advice | Unmeasured:
    """The part of it that takes most, whether or not its source is known."""
    stage = case.code_stage("collate", LEAST_SAMPLES)
    parts = parts_of(stage) if stage is not None else ()
    hot = max(parts, key=lambda part: part.share.mid, default=None)
    copies = hot is not None and _COPIES.match(hot.text or "") is not None
    large = next(iter(_large(case, collate_us)), None) if copies else None
    if large is not None:
        return large
    if hot is None or hot.share.mid < STANDS_OUT or copies:
        return Unmeasured(
            f"collate_fn takes {us(collate_us)} per batch, and nothing in its source is known to "
            "be slow: profile it alone"
        )
    return make_cheaper(case, "collate", hot, {}, grows(case, "collate"))


def _padding(case: Case) -> float | None:
    """Of the batch's values, weighted by size."""
    weight = padding = 0.0
    for leaf in case.inspection.leaves:
        if leaf.padding_share is not None:
            weight += leaf.nbytes or 1
            padding += leaf.padding_share * (leaf.nbytes or 1)
    return padding / weight if weight else None


def _buckets(case: Case) -> str:
    drop = ", drop_last=True" if case.config.get("drop_last") is True else ""
    size = f"batch_size={case.batch_size or 32}{drop}"
    sampler = drawing_sampler(case)
    if sampler is None:
        then = f"""\
# By hand: what draws your loader's samples is not known well enough. Hand it
#     batch_sampler=LengthBuckets(lengths, sampler, {size})
# with one length per sample, and a sampler that draws single samples as now.
"""
    else:
        batches = Source(f"LengthBuckets(lengths, {sampler}, {size})")
        call = loader_code(case, batch_size=DROP, batch_sampler=batches)
        then = f"lengths = [length_of(dataset[i]) for i in range(len(dataset))]\n{call}\n"
    return code_from("samplers", "LengthBuckets", "length_of", then=then)
