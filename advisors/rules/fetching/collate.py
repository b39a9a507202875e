"""A slow collate function: how samples become a batch.

What it looks for
    A collate_fn of your own that takes at least 20 % of the time of making a batch (MAKING_SHARE)
    and that the loop waits for (WAITING_SHARE of the waiting). Its source tells why: a tensor built
    from a list of arrays, padding to the longest sample of a batch, Python loops over values.

Why it matters
    torch.tensor([array, array, …]) looks at every number by itself: torch warns of it, and stacking
    first was measured 7 to 30 times as fast. A Python loop over values costs some 50 ns a value,
    copying less than 1 ns. Padding costs twice: in collating, and in computing on fillers.

What to change
    Stack arrays with np.stack and wrap the result with torch.from_numpy; replace loops by
    whole-array operations; put samples of like length into the same batch.

When not to
    Where collating is a small part of making a batch. Buckets by length make the order of samples
    less random and give the batches more shapes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...case.advice import Outcome, Unmeasured
from ...case.case import Case
from ...case.code_text import Source, parsed
from ...case.evidence import making_us
from ...case.fetching import waited_on
from ...code.hot.functions import unknown
from ...code.hot.operation_chains import operation_chain
from ...code.inputs import stacking_collate
from ...code.loader_code import DROP, loader_code
from ...code.loader_form import collate_name, drawing_sampler, is_default_collate
from ...code.template import code_from
from ...schema.figures import percent, us

NAME = "collate"
KIND = "speed"
EFFORT = "a few lines"

MAKING_SHARE = 0.20
WAITING_SHARE = 0.15
PADDING_SHARE = 0.20  # docs/causes.md, "Padding"


@dataclass(frozen=True)
class _Cause:
    """Why a collate function is slow; `left` is what remains of its time after the fix, at best and
    at worst."""

    title: str
    why: str
    left: tuple[float, float]


# docs/causes.md, "Tensors made of lists": 6.1 to 0.9 s, and 1.97 to 0.063 s.
_FROM_LIST = _Cause(
    "Stack the arrays before making a tensor of them",
    "It makes tensors out of lists, value by value; np.stack copies each array at once.",
    (0.03, 0.2),
)
# np.stack and torch.from_numpy, µs an array and a byte, at best and at worst: 12 arrays of 4 kB
# took 7 µs, 64 of 0.8 kB 23 and of 16 kB 440 (two cores of a shared AMD server, torch 2.13); a loop
# finds less of them in the caches.
STACKED_US = ((0.4, 0.00005), (1.0, 0.0004))
# A loop's body costs ~50 ns a value where an array operation costs ~1; the rest of the function
# stays.
_LOOP = _Cause(
    "Take the Python loops out of collate_fn",
    "It goes through the samples' values in Python; whole-array operations do the same in C.",
    (0.03, 0.4),
)
# docs/causes.md, "Padding": 5.05 to 6.2 steps a second.
_PADDING = _Cause(
    "Put samples of like length into the same batch",
    "It pads every sample to the longest of its batch.",
    (0.5, 0.9),
)

_CHAIN = _Cause(
    "Put one fused operator in the place of a chain of them",
    "It goes through the batch once for each of its element-wise operations, and makes a tensor "
    "each time.",
    (0.15, 0.75),
)

_LIST_CALL = re.compile(
    r"\b(?:torch\.)?(?:tensor|as_tensor|Tensor|FloatTensor|DoubleTensor|LongTensor|IntTensor|HalfTensor)\(\s*"
    r"(?:\[|list\(|\w+\s*[,)])"
)
_LOOP_LINE = re.compile(r"\.tolist\(\)|\.item\(\)|\.append\(|\]\s*[-+*/]?=[^=]|\bmap\(")
_PADS = re.compile(r"\bpad_sequence\(|\bpad\(|\bnp\.pad\(|pad_token|padding", re.IGNORECASE)


def examine(case: Case) -> Iterator[Outcome]:
    if case.loader.kind != "dataloader" or case.whatif is None:
        return
    collate, making = case.mean_us("collate"), making_us(case)
    told = case.config.get("collate_fn")
    if collate is None or not making or not isinstance(told, str) or is_default_collate(told):
        return
    waited = waited_on(case, "collate")
    if collate < MAKING_SHARE * making or waited < WAITING_SHARE:
        return
    part = case.inspection.collate
    if part is None or not part.call:
        yield Unmeasured(
            "collate_fn is slow, but its source was not recorded, so what to change is not known"
        )
        return
    padding = _padding(case)
    cause = _cause("\n".join(part.call), padding)
    chain = operation_chain(part.call) if cause is None else None
    if chain is not None:
        cause = replace(_CHAIN, left=chain.left)
    if cause is None:
        yield Unmeasured(
            f"collate_fn takes {us(collate)} a batch, and nothing in its source is known to be "
            f"slow: {_hottest(case)}"
        )
        return
    evidence = {
        "collating": f"{us(collate)} a batch, {percent(collate / making)} of making it",
        "waiting for it": f"{percent(waited)} of all waiting",
    }
    if padding is not None:
        evidence["padding"] = f"{percent(padding)} of the batch's values"
    name = collate_name(case)
    code = (
        chain.code(name)
        if chain is not None
        else _buckets(case)
        if cause is _PADDING
        else _stacking(case, name)
    )
    yield case.change(code=code, **_left(case, cause, collate, part.call)).advise(
        title=cause.title,
        why=f"{name} takes {percent(collate / making)} of the time of making a batch. {cause.why}",
        evidence=evidence,
        caveat="Batches will have more shapes, and the order of samples is less random."
        if cause is _PADDING
        else f"Compare its batches with those of {name} once: whatever else {name} does has to be "
        "kept.",
    )


def _cause(source: str, padding: float | None) -> _Cause | None:
    if _LIST_CALL.search(source):
        return _FROM_LIST
    if re.search(r"\b(?:for|while)\b", source) and _LOOP_LINE.search(source):
        return _LOOP
    if padding is not None and padding > PADDING_SHARE and _PADS.search(source):
        return _PADDING
    return None


def _left(case: Case, cause: _Cause, collate_us: float, source: Sequence[str]) -> dict[str, Any]:
    """What stacking costs is known by the batch's size; what else the function does stays, where it
    does more."""
    size, nbytes = case.batch_size, case.report.bytes_per_batch
    if cause is not _FROM_LIST or size is None or nbytes is None:
        return {"collate": cause.left}
    arrays = size * max(1, len(case.inspection.leaves))
    low, high = (a * arrays + b * nbytes for a, b in STACKED_US)
    if not _one_statement(source):
        high = max(high, cause.left[1] * collate_us)
    high = min(high, cause.left[1] * collate_us * 2)
    return {"collate_us": (min(low, high), high)}


def _one_statement(source: Sequence[str]) -> bool:
    """Whether the function does nothing else than return what one expression makes."""
    tree = parsed(source)
    if tree is None:
        return False
    function = next(
        (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda)), None
    )
    return isinstance(function, ast.Lambda) or (
        function is not None
        and len(function.body) == 1
        and isinstance(function.body[0], ast.Return)
    )


def _hottest(case: Case) -> str:
    """Where its time goes, if stacks show it."""
    stage = case.report.code.stages.get("collate") if case.report.code is not None else None
    found = unknown(stage) if stage is not None else None
    if found is None:
        return "profile it alone"
    place = f" at {found.place}" if found.place is not None else ""
    return f"{percent(found.share)} of it is {found.name}{place}"


def _padding(case: Case) -> float | None:
    """Of the batch's values, weighted by size."""
    known = [
        (leaf.padding_share, leaf.nbytes or 1)
        for leaf in case.inspection.leaves
        if leaf.padding_share is not None
    ]
    weight = sum(size for _, size in known)
    return sum(share * size for share, size in known) / weight if weight else None


def _stacking(case: Case, name: str) -> str:
    loader = loader_code(case, collate_fn=Source("stack_samples"))
    return f"{stacking_collate(case.inspection, name)}\n\n{loader}\n"


def _buckets(case: Case) -> str:
    size, last = case.batch_size or 32, case.config.get("drop_last") is True
    drop = ", drop_last=True" if last else ""
    sampler = drawing_sampler(case)
    if sampler is None:
        then = (
            "# By hand: what your loader draws its samples with is not known well enough. Hand it\n"
            f"#     batch_sampler=LengthBuckets(lengths, sampler, batch_size={size}{drop})\n"
            "# with one length a sample, and a sampler that draws single samples as now.\n"
        )
    else:
        batches = Source(f"LengthBuckets(lengths, {sampler}, batch_size={size}{drop})")
        call = loader_code(case, batch_size=DROP, batch_sampler=batches)
        then = f"lengths = [length_of(dataset[i]) for i in range(len(dataset))]\n{call}\n"
    return code_from("samplers", "LengthBuckets", "length_of", then=then)
