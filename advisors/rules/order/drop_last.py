"""A short last batch that costs far more than its size: a recompilation, or an uneven step.

What it looks for
    drop_last=False and epochs that end in a short batch. In at least 2 epochs (LEAST_EPOCHS), and
    in most, the step on that batch takes at least 3 times the median step (SLOWER) and 1 % of the
    epoch (LEAST_SHARE).

Why it matters
    Compiled models, CUDA graphs and tuned kernels are made for one shape. Another shape means
    compiling or tuning again, and the short batch causes that in each epoch. One report lost 1.5
    times the gain of compiling that way. In distributed training a rank with one batch more makes
    the others wait, or hang.

What to change
    drop_last=True in training. With shuffling, other samples are left out in each epoch.

When not to
    Never in evaluation: there, every sample counts. A loop that does more after its last batch
    (saving, evaluating) looks the same from outside: check whether yours does.
"""

from collections.abc import Iterator
from statistics import median

import numpy as np

from ....profiler.store.run.run import LoaderRun
from ...case.advice import Outcomes
from ...case.case import Case
from ...code.batched.drawn import kept_epochs
from ...schema.evidence import count, figure, percent, us
from ...schema.report_model import Range

KIND = "correctness"
EFFORT = "one argument"
NEEDS = "DataLoader"

SLOWER = 3.0
LEAST_EPOCHS = 2
LEAST_SHARE = 0.01
MOST = 0.8
LEAST_USUAL = 10  # full batches, to know the usual step


def examine(case: Case) -> Outcomes:
    if case.config.get("drop_last") or not case.batch_size:
        return
    batches = case.loader.batches
    compute = batches["compute_ns"]
    usual = compute[(batches["samples"] == case.batch_size) & (compute >= 0)]
    if len(usual) < LEAST_USUAL:
        return
    normal, lasts = float(np.median(usual)), list(_short_lasts(case.loader, case.batch_size))
    slow = [
        (own, epoch, samples)
        for own, epoch, samples in lasts
        if own >= SLOWER * normal and own - normal >= LEAST_SHARE * epoch
    ]
    if len(slow) < LEAST_EPOCHS or len(slow) < MOST * len(lasts) or normal <= 0:
        return
    share = median((own - normal) / epoch for own, epoch, _ in slow)
    gain = 1 / (1 - min(share, 0.9))
    typical = median(own for own, _, _ in slow)
    yield case.change(
        drop_last=True, then="\n", predicted=Range(1 + (gain - 1) / 2, gain, gain)
    ).advise(
        "Leave the short last batch out of training: drop_last=True",
        f"The last batch of an epoch has {slow[-1][2]} samples instead of {case.batch_size}, and "
        f"its step takes {figure(typical / normal)} times as long as others: a new shape makes the "
        "model compile or tune again.",
        {
            "step on a short last batch": us(typical / 1e3),
            "median step": us(normal / 1e3),
            "epochs with it": count(len(slow), f"of {len(lasts)}"),
            "of an epoch's time": percent(share),
        },
        caveat="Never in evaluation, where every sample counts. Work that the loop does after the "
        "last batch looks the same.",
    )


def _short_lasts(loader: LoaderRun, size: int) -> Iterator[tuple[float, float, int]]:
    """Of each short last batch: ns of its computing, ns of its epoch, its samples."""
    batches = loader.batches
    steps = batches["wait_ns"].clip(0) + batches["compute_ns"].clip(0)
    for rows in kept_epochs(loader):
        samples, own = (int(batches[name][rows[-1]]) for name in ("samples", "compute_ns"))
        if len(rows) > 1 and 0 < samples < size and own >= 0:
            yield float(own), float(steps[rows].sum()), samples
