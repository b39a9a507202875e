"""Copies to the device that are many and small, that wait, or whose pinning came to nothing.

What it looks for
    On a device, copies that take at least 5 % of the step (COPY_SHARE; the time of the calls in the training process
    counts too), and of them: more than 8 a batch with less than 256 kB each (MANY, SMALL_BYTES); or, with
    pin_memory=True, copies made without non_blocking=True; or copies that were not pinned although the option is on.

Why it matters
    Each copy costs a call and a start-up on the bus of some ten microseconds, however small it is. A blocking copy
    makes the training process wait for it, though the device could compute meanwhile. Batches of a class of your own
    are not pinned unless the class has a pin_memory method: the option is then silently without effect.

What to change
    Pack small tensors into one and split it on the device (or use a TensorDict); copy with non_blocking=True; give the
    batch class a pin_memory method.

When not to
    A "CUDA prefetcher" on top gains about nothing where copies are below 5 % of the step. Blocking copies out of
    ordinary memory stay blocking whatever the flag says: pin first (see pin-memory).
"""

from __future__ import annotations

from collections.abc import Iterator

from ...case.case import Advice, Case, Outcome, Unmeasured
from ...code.loader_code import loader_code
from ...code.template import code_from
from ...schema.figures import count, figure, percent, size, us
from ...stage_model.measured import mean

NAME = "h2d-copies"
KIND = "speed"
EFFORT = "a few lines"

# docs/causes.md, "Pageable copies", and "Where the usual advice is wrong", 4.
COPY_SHARE = 0.05
MANY = 8.0
SMALL_BYTES = 256e3
# Parts of all copies from which they are called blocking, or not pinned.
MOST = 0.5
# Factors on the copies' time: packed (docs/causes.md, "Many tiny tensors": 1.25 to 1.67 on all of a step that
# copies dominate), hidden behind computing, from page-locked memory.
PACKED = (0.2, 0.7)
HIDDEN = (0.1, 0.8)
PINNED = (0.3, 0.8)


def examine(case: Case) -> Iterator[Outcome]:
    if not case.has_device or case.whatif is None:
        return
    batches = case.loader.batches
    if not batches.measured("h2d_copies") or case.share("h2d") is None:
        yield Unmeasured("the copies to the device were not timed: device events were not available")
        return
    share = max(case.share("h2d") or 0.0, case.share("h2d_host") or 0.0)
    copies = mean(case.loader.batches["h2d_copies"])
    if share < COPY_SHARE or not copies:
        return
    nbytes = mean(case.loader.batches["h2d_bytes"])
    evidence = {
        "copies a batch": figure(copies),
        "copying": f"{us(case.mean_us('h2d') or 0.0)} a batch, {percent(share)} of the step",
    }
    if nbytes is not None:
        evidence["a copy"] = size(nbytes / copies)
    if copies > MANY and nbytes is not None and nbytes / copies < SMALL_BYTES:
        yield Advice(
            title="Pack the batch's small tensors into one copy",
            why=f"A batch goes to the device in {count(copies)} copies of {size(nbytes / copies)}: their number costs "
            "more than their bytes.",
            evidence=evidence,
            predicted=case.predict(h2d=PACKED),
            copies=share,
            code=code_from("crossing", "to_device"),
            caveat="Tensors of other types each make one more copy.",
        )
    elif case.config.get("pin_memory") is True:
        yield from _pinned(case, copies, share, evidence)


def _pinned(case: Case, copies: float, share: float, evidence: dict[str, str]) -> Iterator[Outcome]:
    pinned, blocking = mean(case.loader.batches["h2d_pinned"]), mean(case.loader.batches["h2d_blocking"])
    if pinned is not None and pinned < (1 - MOST) * copies:
        yield Advice(
            title="Give the batch class a pin_memory method",
            why="pin_memory=True is set, yet the copies come from ordinary memory: batches of a class of your own are "
            "pinned only by their own method.",
            evidence={**evidence, "pinned copies": f"{figure(pinned)} of {figure(copies)}"},
            predicted=case.predict(h2d=PINNED),
            copies=share,
            code=_PIN_METHOD + loader_code(case, pin_memory=True) + "\n",
        )
    elif blocking is not None and blocking > MOST * copies:
        yield Advice(
            title="Copy with non_blocking=True",
            why="The batch lies in page-locked memory, but each copy makes the training process wait for its end.",
            evidence={**evidence, "blocking copies": f"{figure(blocking)} of {figure(copies)}"},
            predicted=case.predict(h2d=HIDDEN),
            copies=share,
            code="# in the loop, for each tensor of the batch\nx = x.to(device, non_blocking=True)\n",
            caveat="Do not write to the batch's memory on the CPU before the copy is done.",
        )


_PIN_METHOD = """# in the class of the batch:
#     def pin_memory(self):
#         self.x = self.x.pin_memory()  # and so on, for each tensor it holds
#         return self
"""
