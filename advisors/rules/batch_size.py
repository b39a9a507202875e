"""Batches so small that the cost of each outweighs the work on its samples.

What it looks for
    A batch size of at most 4 (TINY) where drawing indices, collating and handing over cost more a batch than fetching
    its samples, and where loading holds training up.

Why it matters
    Each batch costs a fixed time, however few samples are in it: a turn of the loop, a collate call, a hand-over from a
    worker. With few samples that time is most of what a sample costs.

What to change
    A batch eight times as large (TIMES). Where memory or the training itself forbids it, fetch large batches and split
    them in the loop.

When not to
    A larger batch changes training: the learning rate has to follow, and there are fewer steps an epoch. It needs more
    memory on the device. Where fetching is the work, a larger batch takes just as much longer.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..case import Advice, Case, Outcome, Unmeasured
from ..evidence import hand_over_us
from ..model import Range
from ..words import loader_code, us

NAME = "batch-size"
KIND = "speed"

# Above it the fixed cost is spread over enough samples to be small beside them.
TINY = 4
TIMES = 8
# Of a stage's time at so small a batch, the part that grows with the samples: (low, high).
GROWS = {"index": (0.2, 0.8), "collate": (0.2, 0.7), "transfer": (0.05, 0.5)}


def examine(case: Case) -> Iterator[Outcome]:
    size, fetch = case.batch_size, case.mean_us("fetch")
    if case.has_device and case.mean_us("compute_device") is None:
        yield Unmeasured("how well the device is used at this batch size is not known: no device events were recorded")
        return
    if size is None or size > TINY or fetch is None or case.whatif is None:
        return
    parts = {
        "drawing indices": case.mean_us("index") or 0.0,
        "collate": case.mean_us("collate") or 0.0,
        "hand-over": (hand_over_us(case) or 0.0) if case.num_workers else 0.0,
    }
    overhead = sum(parts.values())
    if overhead <= fetch or case.report.verdict == "compute-bound":
        return
    yield Advice(
        title=f"Make batches larger, for example {size * TIMES} instead of {size}",
        why=(
            f"A batch of {size} costs {us(overhead)} beside the {us(fetch)} its samples take, and that hardly grows "
            f"with their number. The factor is in samples a second, for batches of {size * TIMES}."
        ),
        evidence={
            "fetch a batch": us(fetch),
            **{name: us(value) for name, value in parts.items() if value > 0},
        },
        predicted=_in_samples(case),
        code="from torch.utils.data import DataLoader\n\n" + loader_code(case, batch_size=size * TIMES) + "\n",
        params={"batch_size": size * TIMES},
        caveat="This changes training: scale the learning rate, and see that the loss still falls as it did.",
    )


def _in_samples(case: Case) -> Range:
    """Factor on samples a second: of batches a second, times how many more samples each has."""
    assert case.whatif is not None
    changes: dict[str, float | tuple[float, float]] = {"fetch": float(TIMES), "compute": float(TIMES)}
    for name, (low, high) in GROWS.items():
        if name == "transfer" and not case.num_workers:
            continue
        changes[name] = (1 + low * (TIMES - 1), 1 + high * (TIMES - 1))
    found = case.whatif.predict(**changes)
    return Range(found.low * TIMES, found.mid * TIMES, found.high * TIMES)
