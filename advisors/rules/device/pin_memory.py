"""Page-locked memory for copies to the device, with non_blocking copies.

What it looks for
    Copies to the device out of ordinary memory that take more than 5 % of the step (COPY_SHARE), or
    workers whose batches are rebuilt inside next() (unpacking above 10 % of the waiting,
    UNPACK_SHARE), which pin_memory moves to a thread. Without a device, the option does nothing.

Why it matters
    Copies from page-locked memory run two to four times as fast and can overlap with computing. But
    pinning is itself a copy: for small batches it costs more than it gains, and the gain is often
    small altogether.

What to change
    pin_memory=True together with non_blocking=True where the batch is copied to the device.

When not to
    Batches of a few kilobytes, and batches of a class of your own, which are pinned only if it has
    a pin_memory method. Page-locked memory cannot be swapped out and is rounded up to powers of
    two.
"""

from typing import Any

from ...case.advice import SAME, Outcomes, Unmeasured
from ...case.case import Case
from ...case.workers import per_batch
from ...schema.evidence import Evidence, percent, size, us

EFFORT = "one argument"

# Copies below this part of a step are not worth a change (docs/causes.md, "Pageable copies").
COPY_SHARE = 0.05
UNPACK_SHARE = 0.10
# Copies that came from page-locked memory, of all: above it there is nothing to pin.
PINNED_ALREADY = 0.5
# What is left of the time of pageable copies when they are pinned: they run two to four times as
# fast, a little less on links that are slow compared with memory.
PINNED_COPY = (0.25, 0.65)
# Pinning a smaller tensor costs more in calls than it saves in copying (docs/causes.md, "Pageable
# copies").
SMALL_BYTES = 64_000

_COPY = (
    "\n# in the loop, for each tensor of the batch:\n#     x = x.to(device, non_blocking=True)\n"
)


def examine(case: Case) -> Outcomes:
    on = case.config.get("pin_memory") is True
    if on and not case.has_device:
        yield case.change(pin_memory=False, predicted=SAME).would_not_help(
            "No device is in use, and memory is pinned for copies to a device only.",
            {"device": "none was seen"},
            title="pin_memory=True has no effect here",
        )
    elif not on and case.meets("device prediction"):
        yield from _on(case)


def _on(case: Case) -> Outcomes:
    copies = case.share("h2d")
    unpacking = case.waited_for("unpack") if case.num_workers else 0.0
    by_unpacking = unpacking >= UNPACK_SHARE
    if copies is None and not by_unpacking:
        yield Unmeasured(
            "the copies to the device were not timed, so what pinning would save is not known"
        )
        return
    a_batch, number = case.report.bytes_per_batch, per_batch(case, "h2d_copies") or 0.0
    pinned = (per_batch(case, "h2d_pinned") or 0.0) / max(1.0, number)
    large = a_batch is None or a_batch >= SMALL_BYTES * max(1.0, number)
    copied = copies or 0.0
    by_copies = copied > COPY_SHARE and pinned < PINNED_ALREADY and large
    changes: dict[str, Any] = {}
    reasons = []
    if by_copies:
        changes = {"h2d": PINNED_COPY, "non_blocking": True}
        reasons.append(
            f"Copies to the device take {percent(copied)} of the step, out of ordinary memory."
        )
    if by_unpacking:
        reasons.append(
            f"{percent(unpacking)} of the waiting is rebuilding batches in the loop, which a "
            "thread can do."
        )
    if not reasons:
        return
    yield case.change(pin_memory=True, then=_COPY, **changes).advise(
        "Pin the batches' memory, and copy with non_blocking=True",
        " ".join(reasons),
        _evidence(case),
        beside_loading=copied if by_copies else 0.0,
        caveat="The thread that pins shares Python's lock with the training loop. Do not write to "
        "a batch's memory on the CPU after a non_blocking copy of it was started.",
    )


def _evidence(case: Case) -> Evidence:
    stages = {"copies to the device": "h2d", "pinning": "pin", "rebuilding a batch": "unpack"}
    return {
        **case.copied_at(),
        **{
            name: us(case.mean_us(stage), f"per batch, {percent(case.share(stage))} of the step")
            for name, stage in stages.items()
        },
        "a batch": size(case.report.bytes_per_batch),
    }
