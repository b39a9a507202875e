"""Batches so small that the cost of each outweighs the work on its samples.

What it looks for
    A batch size of at most 4 (TINY) where drawing indices, collating, handing over and torch's own
    lines around them cost more a batch than fetching its samples (medians: what the first batch of
    a new worker costs is another matter), and where loading holds training up, or a device
    computes.

Why it matters
    Each batch costs a fixed time, however few samples are in it: a turn of the loop, a collate
    call, a hand-over from a worker. With few samples that time is most of what a sample costs.

What to change
    A batch eight times as large (TIMES). Where memory or the training itself forbids it, fetch
    large batches and split them in the loop.

When not to
    A larger batch changes training: the learning rate has to follow, and there are fewer steps an
    epoch. It needs more memory on the device. Where fetching is the work, a larger batch takes just
    as much longer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...case.advice import Outcome, Unmeasured
from ...case.case import Case
from ...schema.figures import percent, us
from ...schema.report_model import Range

NAME = "batch-size"
KIND = "speed"
EFFORT = "a few lines"  # the learning rate has to follow

# Above it the fixed cost is spread over enough samples to be small beside them.
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
SIZES = (2, 4, 8, 16)  # times as large, in the table
# Of fetching, a fixed time a batch: the calls and the list around the samples (in the same loops it
# grew by 0.44).
FETCH_FIXED_US = (1.0, 5.0)
LEAST_GROWTH = 0.3


def examine(case: Case) -> Iterator[Outcome]:
    size, fetch = case.batch_size, case.median_us("fetch")
    if case.has_device and case.mean_us("compute_device") is None:
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
        "hand-over": (case.median_us("pack") or 0.0) + (case.median_us("unpack") or 0.0),
    }
    if not case.num_workers:
        parts["torch's own lines"] = max(
            0.0, (case.median_us("wait") or 0.0) - fetch - sum(parts.values())
        )
    if case.has_device and (case.median_us("compute_device") or 0.0) < SHORT_US:
        parts["the device's step"] = case.median_us("compute_device") or 0.0
    overhead = sum(parts.values())
    if overhead <= fetch or (case.report.verdict == "compute-bound" and not case.has_device):
        return
    yield case.change(
        batch_size=size * TIMES, then="\n", predicted=_in_samples(case, fetch, TIMES)
    ).advise(
        title=f"Make batches larger, for example {size * TIMES} instead of {size}",
        why=(
            f"A batch of {size} costs {us(overhead)} beside the {us(fetch)} its samples take, and "
            "that hardly grows with their number. The factor is in samples a second, for batches "
            f"of {size * TIMES}."
        ),
        evidence={
            "fetch a batch": us(fetch),
            **{name: us(value) for name, value in parts.items() if value > 0},
            **(_table(case, size, fetch) if case.has_device else {}),
        },
        beside_loading=1.0 if case.has_device else 0.0,  # fewer launches and copies, too
        caveat="This changes training: scale the learning rate, and see that the loss still falls "
        "as it did.",
    )


def _in_samples(case: Case, fetch_us: float, times: int) -> Range:
    """Factor on samples a second: of batches a second, times how many more samples each has."""
    grows = {**GROWS, "fetch": _fetch_grows(fetch_us), **(ON_DEVICE if case.has_device else {})}
    if not case.num_workers:
        del grows["transfer"]
    changes = {
        name: (1 + low * (times - 1), 1 + high * (times - 1)) for name, (low, high) in grows.items()
    }
    found = case.predict(**changes)
    return Range(found.low * times, found.mid * times, found.high * times)


def _table(case: Case, size: int, fetch_us: float) -> dict[str, str]:
    """Batch size against time an epoch and use of the device, by the what-if model."""
    length, device = case.config.get("dataset_len"), case.mean_us("compute_device")
    if not isinstance(length, int) or device is None or case.whatif is None:
        return {}
    step_us = 1e6 / case.whatif.baseline_batches_per_s
    now_s = length / size * step_us / 1e6
    found = {}
    for times in (1, *SIZES):
        faster = _in_samples(case, fetch_us, times).mid if times > 1 else 1.0
        grown = (
            1 + (times - 1) * ON_DEVICE["compute"][0],
            1 + (times - 1) * ON_DEVICE["compute"][1],
        )
        busy = min(1.0, device * math.sqrt(grown[0] * grown[1]) / times * faster / step_us)
        found[f"batches of {size * times}"] = (
            f"{us(now_s / faster * 1e6)} an epoch, device at work {percent(busy)}"
        )
    return found


def _fetch_grows(fetch_us: float) -> tuple[float, float]:
    least, most = FETCH_FIXED_US
    return max(LEAST_GROWTH, 1 - most / max(most, fetch_us)), max(
        LEAST_GROWTH, 1 - least / max(least, fetch_us)
    )
