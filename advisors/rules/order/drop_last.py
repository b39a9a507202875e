"""A short last batch that costs far more than its size: a recompilation, or an uneven step.

What it looks for
    drop_last=False, epochs that end in a short batch, and in at least 2 of them (LEAST_EPOCHS), and
    in most, a step on that batch that takes 3 times the median step or more (SLOWER), and 1 % of
    the epoch (LEAST_SHARE).

Why it matters
    Compiled models, CUDA graphs and tuned kernels are made for one shape: another shape means
    compiling or tuning again, and the short batch does it in each epoch. One report lost 1.5 times
    the gain of compiling that way. In distributed training a rank with one batch more makes the
    others wait, or hang.

What to change
    drop_last=True in training. With shuffling, other samples are left out in each epoch.

When not to
    Never in evaluation: there, every sample counts. A loop that does more after its last batch
    (saving, evaluating) looks the same from outside: see whether it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import numpy as np

from ...case.advice import Outcome
from ...case.case import Case
from ...schema.figures import figure, percent, us
from ...schema.report_model import Range

NAME = "drop-last"
KIND = "correctness"
EFFORT = "one argument"

SLOWER = 3.0
LEAST_EPOCHS = 2
LEAST_SHARE = 0.01
MOST = 0.8


def examine(case: Case) -> Iterator[Outcome]:
    if case.loader.kind != "dataloader" or case.config.get("drop_last") or not case.batch_size:
        return
    batches, epochs = case.loader.batches, case.loader.epochs
    steps = batches["wait_ns"].clip(0) + batches["compute_ns"].clip(0)
    compute = batches["compute_ns"]
    usual = [int(n) for n in compute[(batches["samples"] == case.batch_size) & (compute >= 0)]]
    if len(usual) < 10:
        return
    normal = float(median(usual))
    lasts: list[
        tuple[float, float, int]
    ] = []  # compute of the short batch, its epoch's time, its samples
    for epoch, count, how in zip(epochs["epoch"], epochs["batches"], epochs["how"], strict=True):
        rows = np.flatnonzero(batches["epoch"] == epoch)
        if how != 1 or len(rows) != count or len(rows) < 2:
            continue
        last = rows[-1]
        if 0 < batches["samples"][last] < case.batch_size and compute[last] >= 0:
            lasts.append(
                (float(compute[last]), float(steps[rows].sum()), int(batches["samples"][last]))
            )
    slow = [
        each
        for each in lasts
        if each[0] >= SLOWER * normal and each[0] - normal >= LEAST_SHARE * each[1]
    ]
    if len(slow) < LEAST_EPOCHS or len(slow) < MOST * len(lasts) or normal <= 0:
        return
    share = median([(own - normal) / epoch for own, epoch, _ in slow])
    gain = 1 / (1 - min(share, 0.9))
    typical = median([own for own, _, _ in slow])
    yield case.change(
        drop_last=True, then="\n", predicted=Range(1 + (gain - 1) / 2, gain, gain)
    ).advise(
        title="Leave the short last batch out of training: drop_last=True",
        why=(
            f"The last batch of an epoch has {slow[-1][2]} samples instead of {case.batch_size}, "
            f"and its step takes {figure(typical / normal)} times as long as others: a new shape "
            "makes the model compile or tune again."
        ),
        evidence={
            "step on a short last batch": us(typical / 1e3),
            "median step": us(normal / 1e3),
            "epochs with it": f"{len(slow)} of {len(lasts)}",
            "of an epoch's time": percent(share),
        },
        caveat="Never in evaluation, where every sample counts. What the loop does after it looks "
        "the same.",
    )
