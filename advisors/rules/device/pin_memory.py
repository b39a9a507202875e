"""Page-locked memory for copies to the device: on, with non_blocking copies, or off.

What it looks for
    On: copies to the device out of ordinary memory that take more than 5 % of the step
    (COPY_SHARE), or workers whose batches are rebuilt inside next() (unpacking above 10 % of the
    waiting, UNPACK_SHARE), which pin_memory moves to a thread. Off: pinning that the loop waits
    for, longer than the copies it speeds up. Without a device, the option does nothing.

Why it matters
    Copies from page-locked memory run two to four times as fast and can overlap with computing. But
    pinning is itself a copy: for small batches it costs more than it gains, and the gain is often
    small altogether.

What to change
    pin_memory=True together with non_blocking=True where the batch is copied to the device; or
    pin_memory=False.

When not to
    Batches of a few kilobytes, and batches of a class of your own, which are pinned only if it has
    a pin_memory method. Page-locked memory cannot be swapped out and is rounded up to powers of
    two.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...case.advice import SAME, Advice, Outcome, Unmeasured
from ...case.case import Case
from ...schema.figures import figure, percent, size, us
from ...stage_model.measured import mean

NAME = "pin-memory"
KIND = "speed"
EFFORT = "one argument"

# Copies below this part of a step are not worth a change (docs/causes.md, "Pageable copies").
COPY_SHARE = 0.05
UNPACK_SHARE = 0.10
PIN_SHARE = 0.05
# Copies that came from page-locked memory, of all: above it there is nothing to pin.
PINNED_ALREADY = 0.5
# What is left of the time of pageable copies when they are pinned: they run two to four times as
# fast, on links that are slow beside memory somewhat less.
PINNED_COPY = (0.25, 0.65)
# Without pinning, a byte takes as much longer: what links do in a µs at most, and buffers of
# drivers at least. A small copy takes most of its time for being one, page-locked or not.
MORE_BYTES_A_US = (12e3, 1e3)
# Pinning a smaller tensor costs more in calls than it saves in copying (docs/causes.md, "Pageable
# copies").
SMALL_BYTES = 64_000


def examine(case: Case) -> Iterator[Outcome]:
    on = case.config.get("pin_memory") is True
    if not case.has_device:
        if on:
            yield _without_device(case)
        return
    if case.whatif is None:
        return
    if on:
        yield from _off(case)
    else:
        yield from _on(case)


def _without_device(case: Case) -> Advice:
    return case.change(pin_memory=False, predicted=SAME).would_not_help(
        title="pin_memory=True has no effect here",
        why="No device is in use, and memory is pinned for copies to a device only.",
        evidence={"device": "none was seen"},
    )


def _on(case: Case) -> Iterator[Outcome]:
    a_batch = case.report.bytes_per_batch
    copies, unpacking = case.share("h2d"), case.waited_for("unpack") if case.num_workers else 0.0
    by_unpacking = unpacking >= UNPACK_SHARE
    if copies is None and not by_unpacking:
        yield Unmeasured(
            "the copies to the device were not timed, so what pinning would save is not known"
        )
        return
    pinned = _pinned_share(case)
    by_copies = (
        copies is not None
        and copies > COPY_SHARE
        and (pinned is None or pinned < PINNED_ALREADY)
        and (
            a_batch is None
            or a_batch >= SMALL_BYTES * max(1.0, mean(case.loader.batches["h2d_copies"]) or 0.0)
        )
    )
    if not (by_copies or by_unpacking):
        return
    changes: dict[str, Any] = {"h2d": PINNED_COPY, "non_blocking": True} if by_copies else {}
    reasons = []
    if by_copies:
        reasons.append(
            f"Copies to the device take {percent(copies or 0)} of the step, out of ordinary memory."
        )
    if by_unpacking:
        reasons.append(
            f"{percent(unpacking)} of the waiting is rebuilding batches in the loop, which a "
            "thread can do."
        )
    yield case.change(pin_memory=True, then=_COPY, **changes).advise(
        title="Pin the batches' memory, and copy with non_blocking=True",
        why=" ".join(reasons),
        evidence=_evidence(case),
        beside_loading=(copies or 0.0) if by_copies else 0.0,
        caveat="The thread that pins shares Python's lock with the training loop. Do not write to "
        "a batch's memory on the CPU after a non_blocking copy of it was started.",
    )


_COPY = (
    "\n# in the loop, for each tensor of the batch:\n#     x = x.to(device, non_blocking=True)\n"
)


def _off(case: Case) -> Iterator[Outcome]:
    pin, copy = case.mean_us("pin"), case.mean_us("h2d")
    waited = case.waited_for("pin") * (case.share("wait") or 0.0)
    if pin is None or copy is None or waited < PIN_SHARE or pin <= copy:
        return
    extra = [(case.report.bytes_per_batch or 0.0) / rate for rate in MORE_BYTES_A_US]
    slower = (1 + extra[0] / copy, 1 + extra[1] / copy)
    yield case.change(pin_memory=False, h2d=slower).advise(
        title="Do not pin memory: it costs more than it gains",
        why=f"Pinning takes {us(pin)} a batch and the copies it speeds up {us(copy)}; the loop "
        f"waits for it {percent(waited)} of the time.",
        evidence=_evidence(case),
        caveat="With workers, batches are then rebuilt inside next() instead of in the pinning "
        "thread.",
    )


def _pinned_share(case: Case) -> float | None:
    batches = case.loader.batches
    copies, pinned = batches["h2d_copies"], batches["h2d_pinned"]
    both = (copies > 0) & (pinned >= 0)
    total = float(copies[both].sum())
    return float(pinned[both].sum()) / total if total else None


def _evidence(case: Case) -> dict[str, str]:
    found = case.copied_at()
    for stage, name in (
        ("h2d", "copies to the device"),
        ("pin", "pinning"),
        ("unpack", "rebuilding a batch"),
    ):
        mean, share = case.mean_us(stage), case.share(stage)
        if mean is not None and share is not None:
            found[name] = f"{us(mean)} a batch, {percent(share)} of the step"
    copied, seconds = case.loader.column("h2d_bytes"), case.loader.column("h2d_ns")
    both = (copied > 0) & (seconds > 0)
    if both.any():
        found["speed of the copies"] = (
            f"{figure(float(copied[both].sum() / seconds[both].sum()))} GB/s"
        )
    if case.report.bytes_per_batch is not None:
        found["a batch"] = size(case.report.bytes_per_batch)
    pinned = _pinned_share(case)
    if pinned is not None:
        found["copies from pinned memory"] = percent(pinned)
    return found
