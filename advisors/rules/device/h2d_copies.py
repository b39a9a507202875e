"""Copies to the device that are small and many, that block, or that are not pinned.

What it looks for
    On a device, copies that take at least 5 % of the step (COPY_SHARE; the time of the calls in the
    training process counts too), and of them: more than 8 a batch with less than 256 kB each (MANY,
    SMALL_BYTES); or, with pin_memory=True, copies made without non_blocking=True, copies that were
    not pinned although the option is on, or copies that a busy device makes between its steps, on
    the stream that computes.

Why it matters
    Each copy costs a call and a start-up on the bus of some ten microseconds, however small it is.
    A blocking copy makes the training process wait for it, though the device could compute
    meanwhile. Batches of a class of your own are not pinned unless the class has a pin_memory
    method: the option then silently has no effect. A stream does one thing after another: a copy on
    it makes the next kernel wait, though copying and computing could overlap.

What to change
    Pack small tensors into one and split it on the device (or use a TensorDict); copy with
    non_blocking=True; give the batch class a pin_memory method; copy the next batch on a stream of
    its own while the device computes.

When not to
    A "CUDA prefetcher" (the last of these) gains about nothing if copies are below 5 % of the
    step. Blocking copies out of ordinary memory stay blocking whatever the flag says: pin first
    (see pin-memory).
"""

from ...case.advice import Outcomes, Unmeasured
from ...case.case import Case
from ...case.workers import per_batch
from ...code.loader_code import loader_code
from ...code.template import code_from
from ...schema.evidence import Evidence, count, figure, percent, size, us

NEEDS = "device prediction"

# docs/causes.md, "Pageable copies", and "Where the usual advice is wrong", 4.
COPY_SHARE = 0.05
MANY = 8.0
SMALL_BYTES = 256e3
# Parts of all copies from which they are called blocking, or not pinned.
MOST = 0.5
# Packing, on the host: µs per tensor, bytes per µs, and what the one copy that is left takes of all
# the copies before (this many of them). Together some ten times less than small copies take; half
# as much on a machine that copies them fast.
PACK_TENSOR_US, PACK_BYTES_A_US, LEFT_COPIES = (0.5, 5.0), (20e3, 2e3), (0.5, 2.0)
# Factor on the copies' time from page-locked memory.
PINNED = (0.3, 0.8)


def examine(case: Case) -> Outcomes:
    share, copies = case.copying_share, per_batch(case, "h2d_copies")
    nbytes = per_batch(case, "h2d_bytes")
    if copies is None or share is None:
        yield Unmeasured(
            "the copies to the device were not timed: device events were not available"
        )
        return
    if share < COPY_SHARE or not copies:
        return
    a_copy = nbytes / copies if nbytes is not None else None
    evidence: Evidence = {
        **case.copied_at(),
        "copies per batch": figure(copies),
        "copying": us(case.mean_us("h2d"), f"per batch, {percent(share)} of the step"),
        "a copy": size(a_copy),
    }
    if copies > MANY and nbytes is not None and a_copy is not None and a_copy < SMALL_BYTES:
        change = case.change(
            code=code_from("crossing", "to_device"), h2d=_packed(case, copies, nbytes)
        )
        yield change.advise(
            "Pack the batch's small tensors into one copy",
            f"A batch goes to the device in {count(copies)} copies of {size(a_copy)}: their number "
            "costs more than their bytes.",
            evidence,
            beside_loading=share,
            caveat="Tensors of other types each make one more copy.",
        )
    elif case.config.get("pin_memory") is True:
        yield from _pinned(case, copies, share, evidence)


def _packed(case: Case, copies: float, nbytes: float) -> tuple[float, float]:
    """Factors on the time of a batch's copies if they were one."""
    now_us = max(1.0, case.mean_us("h2d") or 0.0, case.mean_us("h2d_host") or 0.0)
    low, high = (
        min(1.0, (copies * tensor + nbytes / rate + left * now_us / copies) / now_us)
        for tensor, rate, left in zip(PACK_TENSOR_US, PACK_BYTES_A_US, LEFT_COPIES, strict=True)
    )
    return low, high


def _pinned(case: Case, copies: float, share: float, evidence: Evidence) -> Outcomes:
    pinned, blocking = (per_batch(case, name) for name in ("h2d_pinned", "h2d_blocking"))
    steps = case.loader.device_steps
    aside = steps.aside_share if steps is not None else None
    if pinned is not None and pinned < (1 - MOST) * copies:
        code = f"{_PIN_METHOD}{loader_code(case, pin_memory=True)}\n"
        yield case.change(code=code, h2d=PINNED).advise(
            "Give the batch class a pin_memory method",
            "pin_memory=True is set, yet the copies come from ordinary memory: batches of a class "
            "of your own are pinned only by their own method.",
            {**evidence, "pinned copies": figure(pinned, f"of {figure(copies)}")},
            beside_loading=share,
        )
    elif blocking is not None and blocking > MOST * copies:
        yield case.change(code=_NON_BLOCKING, non_blocking=True).advise(
            "Copy with non_blocking=True",
            "The batch lies in page-locked memory, but each copy makes the training process wait "
            "for its end.",
            {**evidence, "blocking copies": figure(blocking, f"of {figure(copies)}")},
            beside_loading=share,
            caveat="Do not write to the batch's memory on the CPU before the copy is done.",
        )
    elif aside is not None and aside < MOST:
        yield case.change(code=_AHEAD, copy_stream=True).advise(
            "Copy the next batch on a stream of its own while the device computes",
            "The device copies each batch between two steps, on the stream that computes. On a "
            "stream of its own, neither waits for the other.",
            evidence,
            beside_loading=share,
            caveat="Two batches are on the device at once.",
        )


_NON_BLOCKING = "# in the loop, for each tensor of the batch\nx = x.to(device, non_blocking=True)\n"
_PIN_METHOD = """# in the class of the batch:
#     def pin_memory(self):
#         self.x = self.x.pin_memory()  # and so on, for each tensor it holds
#         return self
"""

_AHEAD = """import torch
from torch.utils._pytree import tree_map


def copied_ahead(loader, device):
    module = torch.get_device_module(device)
    computing, copying = module.current_stream(), module.Stream()

    def there(value):
        return value.to(device, non_blocking=True) if isinstance(value, torch.Tensor) else value

    def used(value):
        if isinstance(value, torch.Tensor):
            value.record_stream(computing)  # keeps its memory until the step is done with it
        return value

    ahead = None
    for batch in loader:
        with module.stream(copying):
            copied = tree_map(there, batch)
        if ahead is not None:
            yield ahead
        computing.wait_stream(copying)
        ahead = tree_map(used, copied)
    if ahead is not None:
        yield ahead


# for batch in copied_ahead(loader, device): ...
"""
