"""Batches so small that the cost of each outweighs the work on its samples.

What it looks for
    A batch size of at most 4 (TINY) at which drawing indices, collating, handing over and torch's
    own lines around them cost more per batch than fetching its samples (medians, which leave out
    the first batch of a new worker), if loading holds training up or a device computes.

Why it matters
    Each batch costs a fixed time, however few samples are in it: a turn of the loop, a collate
    call, a hand-over from a worker. With few samples that time is most of what a sample costs.

What to change
    A batch eight times as large (TIMES). If memory or the training itself forbids it, fetch large
    batches and split them in the loop.

When not to
    A larger batch changes training: the learning rate has to follow, and there are fewer steps per
    epoch. It needs more memory on the device. If fetching is the work, a larger batch takes just as
    much longer.
"""

from typing import Any

from ...case.advice import Outcomes, Unmeasured
from ...case.case import Case
from ...case.workers import parts_of_more
from ...schema.evidence import us
from ...schema.report_model import Range

EFFORT = "a few lines"  # the learning rate has to follow

# Above it the fixed cost is small next to that of the samples.
TINY = 4
TIMES = 8
# Of a stage's time at so small a batch, the part that grows with the samples: (low, high). Measured
# with one and with eight samples of 64 bytes, as one tensor and as four fields: index 0.02 to 0.07,
# collate 0.03 to 0.08; larger samples take longer to copy.
GROWS = {
    "index": (0.02, 0.5),
    "collate": (0.03, 0.5),
    "transfer": (0.05, 0.5),
    "compute": (0.3, 1.0),
}
# On a device, kernels for so few samples take mostly what a launch takes, and a copy what any copy
# takes.
ON_DEVICE = {"compute": (0.02, 0.5), "h2d": (0.02, 0.5)}
SHORT_US = 500.0  # some kernels and a copy, each of which takes microseconds however little it does
# Of fetching, a fixed time per batch at most and at least: the calls and the list around the
# samples (in the same loops it grew by 0.44).
FETCH_FIXED_US = (5.0, 1.0)
LEAST_GROWTH = 0.3
# Copying samples into a batch, and a batch into shared memory and out of it, µs per byte: what
# takes long for large samples grows with their number.
COLLATED_US, HANDED_US = 0.0004, 0.0008


def examine(case: Case) -> Outcomes:
    size, fetch, device = case.batch_size, case.median_us("fetch"), case.mean_us("compute_device")
    if case.has_device and device is None:
        yield Unmeasured(
            "how well the device is used at this batch size is not known: no device events were "
            "recorded"
        )
        return
    if size is None or size > TINY or fetch is None or case.whatif is None:
        return
    parts = {
        "drawing indices": case.median_us("index") or 0.0,
        "collate": case.median_us("collate") or 0.0,
        "hand-over": case.median_us("pack", "unpack") or 0.0,
    }
    grows = fetch
    samplers = (case.config.get(name) or "torch." for name in ("sampler", "batch_sampler"))
    # torch's own take next to nothing for a sample.
    if not all(str(each).startswith("torch.") for each in samplers):
        grows += parts.pop("drawing indices")
    for name, per_byte in (("collate", COLLATED_US), ("hand-over", HANDED_US)):
        copied = min(parts[name], (case.report.bytes_per_batch or 0.0) * per_byte)
        parts[name] -= copied
        grows += copied
    if not case.num_workers:
        inside = (case.median_us("wait") or 0.0) - grows - sum(parts.values())
        parts["torch's own lines"] = max(0.0, inside)
    step = case.median_us("compute_device") or 0.0
    if case.has_device and step < SHORT_US:
        parts["the device's step"] = step
    overhead = sum(parts.values())
    if (
        overhead <= grows
        or parts_of_more(case)
        or (case.report.verdict != "input-bound" and not case.has_device)
    ):
        return
    yield case.change(
        batch_size=size * TIMES, then="\n", predicted=_in_samples(case, fetch, TIMES)
    ).advise(
        f"Make batches larger, for example {size * TIMES} instead of {size}",
        f"A batch of {size} costs {us(overhead)} besides the {us(grows)} its samples take, and "
        "that hardly grows with their number. The factor is in samples per second, for batches "
        f"of {size * TIMES}.",
        {
            "fetch a batch": us(fetch),
            **{name: us(value or None) for name, value in parts.items()},
        },
        beside_loading=float(case.has_device),  # fewer launches and copies, too
        caveat="This changes training: scale the learning rate, and check that the loss still "
        "falls as it did.",
    )


def _in_samples(case: Case, fetch_us: float, times: int) -> Range:
    """Factor on samples per second: of batches per second, times how many more samples each has."""
    fetch = tuple(max(LEAST_GROWTH, 1 - each / max(each, fetch_us)) for each in FETCH_FIXED_US)
    grows = {**GROWS, "fetch": fetch, **(ON_DEVICE if case.has_device else {})}
    if not case.num_workers:
        del grows["transfer"]
    changes: dict[str, Any] = {
        name: tuple(1 + part * (times - 1) for part in parts) for name, parts in grows.items()
    }
    found = case.predict(**changes)
    return Range(found.low * times, found.mid * times, found.high * times)
