"""Pictures sent as float32 where their 8-bit values would do.

What it looks for
    A float32 part of the batch whose values are all k/255 (8-bit pictures divided by 255), where
    handing batches over from workers and copying them to the device take at least 5 % of the step
    (MOVED_SHARE).

Why it matters
    float32 values take four times the bytes of the uint8 values they come from: four times as much
    to pack, to send, to pin and to copy. One user's step went from 14.9 to 1.0 ms.

What to change
    Send uint8 and divide by 255 on the device, after the copy. Best of all, never make floats:
    return the picture as uint8 from `__getitem__`.

When not to
    Where moving batches is a small part of the step. After normalising with mean and deviation
    values are no longer k/255, and this rule is silent: move the normalising to the device by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ....profiler.store.inspection import Leaf
from ...case.advice import Outcome
from ...case.case import Case
from ...case.code_text import Source
from ...code.loader_code import dataset_class, loader_code
from ...code.loader_form import collate_name
from ...schema.figures import percent, size

NAME = "h2d-dtype"
KIND = "speed"
EFFORT = "a few lines"

# Of a step, handing over and copying: docs/causes.md, "Floats where bytes would do".
MOVED_SHARE = 0.05
# The part of a batch's bytes from which it is worth it: smaller ones do not set the time of a
# hand-over.
LEAST_OF_BATCH = 0.5
# A quarter of the bytes; what does not depend on them stays.
FEWER_BYTES = (0.25, 0.5)

# Where the data set itself makes the floats, leaving that out saves the making, and three quarters
# of what collate copies; how much of fetching it is cannot be told.
AT_SOURCE = {"fetch": (0.3, 1.0), "collate": (0.25, 0.6)}
_MAKES_FLOATS = re.compile(r"/\s*255|to_tensor\(|pil_to_tensor|convert_image_dtype")

_PATH = re.compile(r"(\[\d{1,3}\]|\['\w{1,64}'\]){0,4}")


def examine(case: Case) -> Iterator[Outcome]:
    leaf = _picture(case)
    if leaf is None or case.whatif is None:
        return
    # Main and workers hand over; several workers pack at once, so a step sees a part of it.
    packed = (case.share("pack") or 0.0) / max(1, case.num_workers) + (case.share("unpack") or 0.0)
    copied = (case.copying_share or case.share("h2d_host") or 0.0) if case.has_device else 0.0
    pinned = (case.share("pin") or 0.0) if case.has_device else 0.0
    moved = (packed if case.num_workers else 0.0) + copied + pinned
    if moved < MOVED_SHARE:
        return
    at_source = _made_in_dataset(case)
    changes: dict[str, Any] = dict(AT_SOURCE) if at_source else {}
    if case.num_workers:
        changes["transfer"] = FEWER_BYTES
    if case.has_device:
        changes["h2d"] = changes["pin"] = FEWER_BYTES
    nbytes = leaf.nbytes or 0
    code = _code_at_source(case, leaf) if at_source else _code(case, leaf)
    yield case.change(code=code, **changes).advise(
        title="Send pictures as uint8, and make floats of them on the device",
        why=(
            f"The part batch{leaf.path} is float32, but all its values are k/255: {size(nbytes)} a "
            f"batch are sent where {size(nbytes / 4)} would do. Moving batches takes "
            f"{percent(moved)} of the step."
        ),
        evidence={
            **case.copied_at(),
            f"batch{leaf.path}": f"{size(nbytes)} of float32, all k/255",
            "as uint8": size(nbytes / 4),
            "moving batches": f"{percent(moved)} of the step",
        },
        beside_loading=copied,
        caveat=None
        if at_source
        else "Making bytes of floats again in as_bytes costs the workers a little: returning uint8 "
        "from __getitem__ saves that, too.",
    )


def _picture(case: Case) -> Leaf | None:
    """The largest float32 leaf whose values are all k/255, if it is the better part of the
    batch."""
    leaves = case.inspection.leaves
    total = sum(leaf.nbytes or 0 for leaf in leaves)
    found = [
        leaf
        for leaf in leaves
        if leaf.whole_255ths
        and (leaf.dtype or "").endswith("float32")
        and _PATH.fullmatch(leaf.path)
    ]
    best = max(found, key=lambda leaf: leaf.nbytes or 0, default=None)
    return best if best is not None and (best.nbytes or 0) >= LEAST_OF_BATCH * total > 0 else None


def _made_in_dataset(case: Case) -> bool:
    """Whether the data set's own access method divides by 255, or calls what does."""
    return case.dataset is not None and any(
        _MAKES_FLOATS.search(line) for line in case.dataset.getitem
    )


def _code_at_source(case: Case, leaf: Leaf) -> str:
    place = f"batch{leaf.path}"
    return (
        "from torch.utils.data import DataLoader\n\n"
        f"# In {dataset_class(case)}.__getitem__, leave out what makes floats of the picture "
        "(.float(), / 255,\n"
        "# to_tensor): return its uint8 tensor as it is.\n"
        f"{loader_code(case)}\n\n"
        "# in the loop, after the copy:\n"
        f"#     {place} = {place}.to(device, non_blocking=True).float().div_(255)\n"
    )


def _code(case: Case, leaf: Leaf) -> str:
    place = f"batch{leaf.path}"
    return (
        "import torch\n"
        "from torch.utils.data import DataLoader\n\n\n"
        "def as_bytes(samples):\n"
        f"    batch = {collate_name(case)}(samples)\n"
        f"    {place} = ({place} * 255).round_().to(torch.uint8)\n"
        "    return batch\n\n\n"
        f"{loader_code(case, collate_fn=Source('as_bytes'))}\n\n"
        "# in the loop, after the copy:\n"
        f"#     {place} = {place}.to(device, non_blocking=True).float().div_(255)\n"
    )
