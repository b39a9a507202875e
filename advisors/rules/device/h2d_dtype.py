"""Pictures sent as float32 where their 8-bit values would do.

What it looks for
    A float32 part of the batch whose values are all k/255 (8-bit pictures divided by 255), if
    handing batches over from workers and copying them to the device take at least 5 % of the step
    (MOVED_SHARE).

Why it matters
    float32 values take four times the bytes of the uint8 values they come from: four times as much
    to pack, to send, to pin and to copy. One user's step went from 14.9 to 1.0 ms.

What to change
    Send uint8 and divide by 255 on the device, after the copy. Best of all, never make floats:
    return the picture as uint8 from `__getitem__`.

When not to
    If moving batches is a small part of the step. After normalising with mean and deviation, values
    are no longer k/255, and this rule is silent: move the normalising to the device by hand.
"""

import re
from typing import Any

from ....profiler.store.inspection import Leaf
from ...case.advice import Outcomes
from ...case.case import Case
from ...case.code_text import Source
from ...code.loader_code import loader_code
from ...code.loader_form import collate_name
from ...schema.evidence import percent, size

NEEDS = "prediction"

# Of a step, handing over and copying: docs/causes.md, "Floats where bytes would do".
MOVED_SHARE = 0.05
# The part of a batch's bytes from which it is worth it: smaller ones do not set the time of a
# hand-over.
LEAST_OF_BATCH = 0.5
# A quarter of the bytes; what does not depend on them stays.
FEWER_BYTES = (0.25, 0.5)

_PATH = re.compile(r"(\[\d{1,3}\]|\['\w{1,64}'\]){0,4}")


def examine(case: Case) -> Outcomes:
    leaf = _picture(case)
    if leaf is None:
        return
    moved = copied = 0.0
    changes: dict[str, Any] = {}
    if case.num_workers:
        # Main and workers hand over; several workers pack at once, so a step sees a part of it.
        moved += (case.share("pack") or 0.0) / case.num_workers + (case.share("unpack") or 0.0)
        changes["transfer"] = FEWER_BYTES
    if case.has_device:
        copied = case.copying_share or case.share("h2d_host") or 0.0
        moved += copied + (case.share("pin") or 0.0)
        changes |= {"h2d": FEWER_BYTES, "pin": FEWER_BYTES}
    if moved < MOVED_SHARE:
        return
    nbytes, place = leaf.nbytes or 0, f"batch{leaf.path}"
    yield case.change(code=_code(case, leaf), **changes).advise(
        "Send images as uint8, and convert them to float on the device",
        f"The part {place} is float32, but all its values are k/255: {size(nbytes)} per batch are "
        f"sent where {size(nbytes / 4)} would do. Moving batches takes {percent(moved)} of the "
        "step.",
        {
            **case.copied_at(),
            place: size(nbytes, "of float32, all k/255"),
            "as uint8": size(nbytes / 4),
            "moving batches": percent(moved, "of the step"),
        },
        beside_loading=copied,
        caveat="Making bytes of floats again in as_bytes costs the workers a little: returning "
        "uint8 from __getitem__ saves that, too.",
    )


def _picture(case: Case) -> Leaf | None:
    """The largest float32 leaf whose values are all k/255, if it is most of the batch."""
    leaves = case.inspection.leaves
    total = sum(leaf.nbytes or 0 for leaf in leaves)
    for leaf in sorted(leaves, key=lambda leaf: -(leaf.nbytes or 0)):
        picture = leaf.whole_255ths and (leaf.dtype or "").endswith("float32")
        if picture and _PATH.fullmatch(leaf.path):
            return leaf if (leaf.nbytes or 0) >= LEAST_OF_BATCH * total > 0 else None
    return None


def _code(case: Case, leaf: Leaf) -> str:
    place = f"batch{leaf.path}"
    return f"""\
import torch
from torch.utils._pytree import tree_map
from torch.utils.data import DataLoader


def as_bytes(samples):
    batch = {collate_name(case)}(samples)
    floats = {place}
    return tree_map(
        lambda each: (each * 255).round_().to(torch.uint8) if each is floats else each, batch
    )


{loader_code(case, collate_fn=Source("as_bytes"))}

# in the loop, after the copy:
#     pictures = {place}.to(device, non_blocking=True).float().div_(255)
"""
