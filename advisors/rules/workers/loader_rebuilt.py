"""An iterator, or the loader itself, built again and again.

What it looks for
    Iterators that hand over fewer than five batches each (LEAST_PASS), twenty times or more
    (LEAST_PASSES), as next(iter(loader)) in a training step makes them; and loaders built anew for
    (nearly) every epoch whose start costs more than 5 % of the time (START_SHARE).

Why it matters
    iter() starts the workers, draws a new shuffle and fills the queue with batches that are thrown
    away with the iterator. And data is not seen once an epoch: each iterator begins anew, so that
    with a shuffle some samples come again before others have come at all, and without one the same
    batch comes again and again.

What to change
    Keep one iterator, and begin the next pass when it is exhausted; build the loader once, outside
    the loop.

When not to
    A single batch drawn now and then, to look at it or to warm up, does no harm.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...case.advice import SAME, Outcome
from ...case.case import Case
from ...case.evidence import batches_a_pass, making_us, rebuilt
from ...code.loader_code import loader_code
from ...code.template import definitions
from ...schema.figures import count, figure, percent, us
from ...schema.report_model import Range
from ...stage_model.measured import measured
from ...stage_model.stages import startup_ns

NAME = "loader-rebuilt"
KIND = "speed"
EFFORT = "a few lines"

LEAST_PASS = 5.0
LEAST_PASSES = 20
START_SHARE = 0.05
LEFT_EARLY = 0.5  # of the passes
# A batch right after a start is made with cold caches, and by workers that were just born: a factor
# either way.
ERROR = 1.2
# Ending an iterator (its workers, its order of indices) is over before the step begins, and takes
# this part of its start: measured 0.24 with two workers, 0.17 with a permutation of 300,000. The
# step is at least a fifth of the rest.
ENDING = (0.1, 0.25)
LEAST_STEP = 0.2
MOST_GAIN = 1000.0

_USE = """\
batches = endless(loader)  # once, before the training loop
batch = next(batches)  # in each step, instead of next(iter(loader))
"""


def examine(case: Case) -> Iterator[Outcome]:
    a_pass, passes = batches_a_pass(case), case.loader.epochs.rows
    if a_pass is None or case.loader.kind != "dataloader":
        return
    startup = measured(startup_ns(case.loader))
    if not len(startup):
        return
    begin_us = float(np.median(startup)) / 1e3
    evidence = {
        "iterators": count(passes),
        "batches an iterator": figure(a_pass),
        "from iter() to its first batch": us(begin_us),
    }
    if a_pass < LEAST_PASS and passes >= LEAST_PASSES and _left_early(case):
        yield from _iterators(case, evidence, begin_us, a_pass)
    elif rebuilt(case) and a_pass >= LEAST_PASS:
        yield from _loaders(case, evidence, begin_us)


def _left_early(case: Case) -> bool:
    """Whether most passes stopped before the data did: short data sets make short passes too."""
    return float(np.mean(case.loader.epochs["how"] != 1)) >= LEFT_EARLY


def _iterators(
    case: Case, evidence: dict[str, str], begin_us: float, a_pass: float
) -> Iterator[Outcome]:
    order = "some samples come again before others have come at all"
    if str(case.config.get("sampler")).endswith("SequentialSampler"):
        order = "it is always the same first samples that are seen"
    code = "\n\n".join([f"{loader_code(case)}\n", definitions("samplers", "endless"), _USE])
    yield case.change(code=code, predicted=_kept(case, a_pass)).advise(
        title="Keep the iterator instead of making one for every step",
        why=f"iter(loader) was called {evidence['iterators']} times for {count(case.loader.count)} "
        f"batches. Each call costs {us(begin_us)}, and begins the data anew: {order}.",
        evidence=evidence,
        caveat="Training sees the data in whole passes then, which is what its results should be "
        "compared with.",
        # The order of the data is wrong whatever the speed; and a run like this has no steady
        # batches to judge.
        kind="correctness",
    )


def _kept(case: Case, a_pass: float) -> Range:
    """Factor on batches a second with one iterator, from this run's own times.

    At best the loop never waits. At worst each batch is waited for as long as making it takes, by
    one worker or in the loop.
    """
    whole_us, rest_us = _pass_us(case)
    making = making_us(case)
    if making is None or not 0 < rest_us < whole_us:
        return SAME
    # A pass is its start and, for its batches, computing and waiting: the start is what goes.
    now, start_us = whole_us / a_pass, whole_us - rest_us
    longest, shortest = (
        max(LEAST_STEP * rest_us, rest_us - part * start_us) / a_pass for part in ENDING
    )
    worst = min(now, longest + making)
    best = min(worst, max(shortest if case.num_workers else shortest + making, now / MOST_GAIN))
    low, high = now / worst / ERROR, now / best * ERROR
    return Range(max(1.0, low), max(1.0, (low * high) ** 0.5), max(1.0, high))


def _pass_us(case: Case) -> tuple[float, float]:
    """From one call of iter() to the next, and of that after the first batch: medians over the
    passes in µs, 0 where there are none. Pauses for evaluation, or a busy spell of the machine, do
    not move them."""
    began, startup = case.loader.epochs["t_iter_ns"], startup_ns(case.loader)
    known = (began[:-1] >= 0) & (began[1:] >= 0) & (startup[:-1] >= 0)
    spans = np.diff(began)[known]
    if not len(spans):
        return 0.0, 0.0
    return float(np.median(spans)) / 1e3, float(np.median(spans - startup[:-1][known])) / 1e3


def _loaders(case: Case, evidence: dict[str, str], begin_us: float) -> Iterator[Outcome]:
    starts = case.report.basis.epoch_start_share
    if case.whatif is None or not case.num_workers or starts is None or starts <= START_SHARE:
        return
    yield case.change(
        persistent_workers=True, then="  # once, outside the loop over epochs\n"
    ).advise(
        title="Build the loader once, and keep its workers",
        why=f"The loader was built again for every pass, which costs {us(begin_us)} each time: "
        f"{percent(starts)} of all time. Options that last from one pass to the next cannot work.",
        evidence={**evidence, "epoch starts after the first": percent(starts)},
        caveat="Changes made to the data set between epochs no longer reach the workers.",
    )
