"""What crosses from the workers to the training process: too fragmented, pickled, or too big.

What it looks for
    Workers whose batches cost at least 15 % of the waiting to hand over (WAITING_SHARE), because
    they hold more than 32 tensors (MANY_TENSORS) of less than 4 kB each (TINY_BYTES), because more
    than 250 kB of each batch is pickled through the pipe (PICKLED_BYTES) or pickling takes half of
    the time (OBJECTS_SHARE), because its tensors are parts of four times as much memory
    (MOSTLY_UNUSED), all of which is sent, or because float64 is sent where float32 would do. If the
    loop does not read some of the batch's fields, and they are pickled or a quarter of its bytes
    (UNREAD_SHARE), these come first.

Why it matters
    A tensor's data crosses in shared memory, but each tensor costs a file descriptor, a mapping and
    some messages of its own: 20 to 100 µs, whatever its size. Arrays, texts and Python objects are
    pickled, copied through a pipe and unpickled inside next(). More workers do not help, since one
    process receives them all.

What to change
    Pack many small tensors into one per dtype in collate_fn and split them in the loop. Return
    tensors instead of arrays and lists. Send the smallest dtype that holds the values, and nothing
    that the loop does not read.

When not to
    Without workers nothing crosses. If handing over is a small part of the waiting, the change only
    adds code. Packing uses torch.utils._pytree, which is not public: it has been stable, but
    nothing promises it.
"""

from dataclasses import dataclass

from ....profiler.base.metadata import clean
from ...case.advice import Outcomes
from ...case.case import Case
from ...case.code_text import Source
from ...case.workers import BIG_BYTES, many_small, parts_of_more, per_batch
from ...code.loader_code import loader_code
from ...code.loader_form import collate_name
from ...code.loop_fields import unread
from ...code.template import code_from
from ...schema.evidence import count, percent, size, us

NEEDS = "prediction workers"

WAITING_SHARE = 0.15
# docs/causes.md, "Arrays and objects through the pipe", has a megabyte, for arrays. Objects cost
# far more per byte: 588 kB of dicts took 100 ms on the reference machine
# (benchmarks/known_answers.py, many-objects).
PICKLED_BYTES = 250_000
OBJECTS_SHARE = 0.5  # of the time, whatever their bytes: many small ones cost most
# Above this part of a batch, float64 is worth changing.
WIDE_SHARE = 0.5
UNREAD_SHARE = 0.25


@dataclass(frozen=True)
class _Cause:
    """What makes handing over slow; `left` is what remains of its time (best, worst)."""

    title: str
    why: str
    left: tuple[float, float]
    collate: str  # the function to use, "" for a change by hand
    caveat: str


def examine(case: Case) -> Outcomes:
    cost, making = case.hand_over_us, case.making_us
    # Seen in the awaited batch, or in workers busy with packing.
    waited = case.waited_for("hand-over", "queue", "unpack") + case.waiting.work.get("pack", 0.0)
    if cost is None or making is None or waited < WAITING_SHARE:
        return
    cause = _cause(case)
    if cause is None:
        return
    code = _code(case, cause.collate) if cause.collate else f"# By hand: {cause.title}\n"
    yield case.change(code=code, transfer=cause.left).advise(
        cause.title,
        f"A batch takes {us(cost)} to hand over from its worker, "
        f"{percent(cost / (cost + making))} of all that is done for it. {cause.why}",
        {
            "handing a batch over": us(cost),
            "making a batch": us(making),
            "waiting for it": percent(waited, "of all waiting"),
            "tensors per batch": count(per_batch(case, "tensors")),
            "a batch": size(case.report.bytes_per_batch),
            "pickled per batch": size(per_batch(case, "pickled_bytes")),
        },
        caveat=cause.caveat,
    )


def _code(case: Case, collate: str) -> str:
    then = f"{loader_code(case, collate_fn=Source(collate))}\n"
    return code_from("crossing", collate, then=then, COLLATE=collate_name(case))


def _unread(case: Case, pickles: bool, objects: float) -> _Cause | None:
    """Fields that the loop does not read, if handing them over costs."""
    leaves = case.inspection.leaves
    fields = unread(case.inspection.loop, (leaf.path for leaf in leaves))
    others = [leaf for leaf in leaves if not leaf.path.startswith(fields)]
    total, used = (sum(leaf.nbytes or 0 for leaf in each) for each in (leaves, others))
    left = used / total if total else 1.0
    high = (1 + left) / 2
    if pickles and all(leaf.kind == "tensor" for leaf in others):
        left = min(left, 0.3, 1 - objects)
        high = min(high, 3 * left)
    if not fields or left > 1 - UNREAD_SHARE:
        return None
    named = clean(", ".join(f"batch{each}" for each in fields[:4]), 160)
    return _Cause(
        f"Drop from the batch what the loop does not use: {named}",
        "The loop's source does not read these fields, and each batch carries them.",
        (left / 2, high),
        "",
        "Functions that get the batch elsewhere, such as evaluation, may read them.",
    )


def _cause(case: Case) -> _Cause | None:
    many, pickled = per_batch(case, "tensors") or 0.0, per_batch(case, "pickled_bytes") or 0.0
    a_batch = case.report.bytes_per_batch
    objects = case.whatif.objects_share if case.whatif is not None else 0.0
    pickles = pickled > PICKLED_BYTES or objects > OBJECTS_SHARE
    if (found := _unread(case, pickles, objects)) is not None:
        return found
    if parts := parts_of_more(case):
        used, kept = parts
        return _Cause(
            "Clone parts of large tensors before they leave the worker",
            f"Its tensors are parts of {size(kept)}, all of which is copied for {size(used)}.",
            (used / kept, 0.5),
            "collate_cloned",
            "Where the data set gives parts to the loop without workers, cloning copies them.",
        )
    if small := many_small(case):
        return _Cause(
            "Pack the batch's many small tensors into one",
            f"{count(round(small))} of its {count(many)} tensors are small, and each crosses by "
            "itself.",
            # A batch of few tensors crosses for a fixed cost; splitting costs a view (1 µs) per
            # tensor.
            (min(0.5, 3 / many), 0.5),
            "collate_packed",
            "The tensors of a batch are then views of one: clone() what outlives it.",
        )
    if pickles:
        return _Cause(
            "Return tensors from the workers, not arrays or Python objects",
            f"{size(pickled)} of it is pickled through a pipe instead of lying in shared memory.",
            (0.11, 0.65),  # 8.9 times for small batches, 1.6 for large ones
            "collate_tensors",
            "Texts and lists are still pickled: encode them as numbers in the data set. "
            "torch.from_numpy shares memory, so code that expects arrays gets them from "
            "tensor.numpy().",
        )
    wide = _wide_share(case)
    if a_batch is not None and a_batch > BIG_BYTES and wide > WIDE_SHARE:
        return _Cause(
            "Send float32 instead of float64",
            f"{percent(wide)} of its {size(a_batch)} is float64, twice as many bytes as float32.",
            (1 - wide / 2, 1 - wide / 4),
            "collate_narrow",
            "The values lose precision beyond seven digits.",
        )
    return None


def _wide_share(case: Case) -> float:
    """The part of a batch's bytes that is float64 tensors."""
    total = wide = 0
    for leaf in case.inspection.leaves:
        total += leaf.nbytes or 0
        if leaf.kind == "tensor" and (leaf.dtype or "").endswith("float64"):
            wide += leaf.nbytes or 0
    return wide / total if total else 0.0
