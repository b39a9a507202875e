"""A program that waits for the device in each step, so that it loads and computes in turn.

What it looks for
    Lines that wait for the device in (nearly) every step, seen on eight steps of the loop:
    `loss.item()`, `float(loss)`, `print(loss)`, `.cpu()`, `.tolist()`, `if loss > x`. Together they
    wait for at least 5 % of the step (WAITED_SHARE).

Why it matters
    A program gives the device its work ahead of time: while the device computes a step, the program
    loads the next batch. Reading a value that the device has yet to compute ends that. The device
    is then idle while the next batch is loaded, and timers that do not synchronise blame the loader
    for it.

What to change
    Keep sums on the device and read them every few hundred steps, or at the end of the epoch.

When not to
    If a value decides what the next step does (a loss that must be finite, early stopping), read
    that of the step before: its copy to page-locked memory, with non_blocking=True, is there by
    then. If batches are ready at once, there is little to gain, and this rule is silent.
"""

from ...case.advice import Outcomes
from ...case.case import Case
from ...schema.evidence import percent, us

NEEDS = "prediction"

# Of a step, waited for the device by these lines: what other stages are worth a change from.
WAITED_SHARE = 0.05
MOST_SHOWN = 3

_CODE = """# before the loop
total = 0.0

# in the loop: the sum stays on the device, and nothing waits for it
#     total = total + loss.detach()
#     if step % 100 == 0:
#         print(float(total) / (step + 1))
"""


def examine(case: Case) -> Outcomes:
    steps, step_us = case.loader.device_steps, case.mean_us("wait", "compute") or 0.0
    if steps is None or not steps.every_step:
        return
    waits = sorted(steps.every_step, key=lambda wait: -wait.mean_ns * wait.a_step)
    waited_us = sum(wait.mean_ns * wait.a_step for wait in waits) / 1e3
    if waited_us < WAITED_SHARE * step_us:
        return
    first, share = waits[0], percent(waited_us / step_us)
    said = f"`{first.line}`" if first.line else f"A call of {first.call}"
    shown = {each.place: us(each.mean_ns / 1e3, f"in {each.call.strip('_')}()") for each in waits}
    yield case.change(code=_CODE, synchronous=False).advise(
        f"Do not wait for the device in each step ({first.place})",
        f"{said} at {first.place} reads what the device has yet to compute: the program waits "
        f"{us(waited_us)} per step there ({share}), instead of loading the next batch.",
        {
            "waiting for the device": us(waited_us, "per step"),
            "of the step": share,
            **dict(list(shown.items())[:MOST_SHOWN]),
        },
        caveat="What is printed or logged is then of some steps only, or of their mean.",
    )
