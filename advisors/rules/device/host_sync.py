"""A program that waits for the device in each step, and so loads and computes in turn.

What it looks for
    Lines that wait for the device in (nearly) every step, seen on eight steps of the loop:
    `loss.item()`, `float(loss)`, `print(loss)`, `.cpu()`, `.tolist()`, `if loss > x`. Together they
    wait for at least 5 % of the step (WAITED_SHARE).

Why it matters
    A program gives the device its work ahead of time: while the device computes a step, the program
    loads the next batch. Reading a value that the device has yet to compute ends that. The device
    then has nothing to do while the next batch is loaded, and timers that do not synchronise blame
    the loader for it.

What to change
    Keep sums on the device and read them every few hundred steps, or at the end of the epoch.

When not to
    Where a value decides what the next step does (a loss that must be finite, early stopping), read
    that of the step before: its copy to page-locked memory, with non_blocking=True, is there by
    then. Where batches are there at once there is little to gain, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...case.advice import Outcome
from ...case.case import Case
from ...schema.figures import percent, us

NAME = "host-sync"
KIND = "speed"
EFFORT = "a few lines"

# Of a step, waited for the device by these lines: what other stages are worth a change from.
WAITED_SHARE = 0.05
MOST_SHOWN = 3


def examine(case: Case) -> Iterator[Outcome]:
    steps = case.loader.device_steps
    if steps is None or not steps.every_step or case.whatif is None:
        return
    waits = sorted(steps.every_step, key=lambda wait: -wait.mean_ns * wait.a_step)
    waited_us = sum(wait.mean_ns * wait.a_step for wait in waits) / 1e3
    step_us = (case.mean_us("wait") or 0.0) + (case.mean_us("compute") or 0.0)
    if waited_us < WAITED_SHARE * step_us:
        return
    first = waits[0]
    said = f"`{first.line}`" if first.line else f"a call of {first.call}"
    yield case.change(code=_CODE, synchronous=False).advise(
        title=f"Do not wait for the device in each step ({first.place})",
        why=(
            f"{said[0].upper()}{said[1:]} at {first.place} reads what the device has yet to "
            f"compute: the program waits {us(waited_us)} a step there "
            f"({percent(waited_us / step_us)}), instead of loading the next batch."
        ),
        evidence={
            "waiting for the device": f"{us(waited_us)} a step, {percent(waited_us / step_us)} of "
            "it",
            **{
                each.place: f"{us(each.mean_ns / 1e3)} in {each.call.strip('_')}()"
                for each in waits[:MOST_SHOWN]
            },
        },
        caveat="What is printed or logged is then of some steps only, or of their mean.",
    )


_CODE = """# before the loop
total = 0.0

# in the loop: the sum stays on the device, and nothing waits for it
#     total = total + loss.detach()
#     if step % 100 == 0:
#         print(float(total) / (step + 1))
"""
