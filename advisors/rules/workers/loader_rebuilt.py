"""An iterator, or the loader itself, built again and again.

What it looks for
    Iterators that hand over fewer than five batches each (LEAST_PASS), twenty times or more
    (LEAST_PASSES), as next(iter(loader)) in a training step makes them. Also loaders built anew for
    nearly every epoch, if starting them costs more than 5 % of the time (START_SHARE).

Why it matters
    iter() starts the workers, draws a new shuffle and fills the queue with batches that are thrown
    away with the iterator. Data is then not seen once per epoch: each iterator begins anew. With a
    shuffle, some samples come again before others have come at all. Without one, the same batch
    comes every time.

What to change
    Keep one iterator, and begin the next pass when it is exhausted. Build the loader once, outside
    the loop.

When not to
    A single batch drawn now and then, to look at it or to warm up, does no harm.
"""

import numpy as np

from ....profiler.store.run.epoch_ends import rebuilt
from ...case.advice import SAME, Advice, Outcomes
from ...case.case import Case
from ...case.workers import batches_a_pass
from ...code.loader_code import loader_code
from ...code.template import definitions
from ...schema.evidence import Evidence, count, figure, percent, us
from ...stage_model.measured import measured
from ...stage_model.stages import startup_ns

NEEDS = "DataLoader"

LEAST_PASS = 5.0
LEAST_PASSES = 20
START_SHARE = 0.05
LEFT_EARLY = 0.5  # of the passes

_USE = """\
batches = endless(loader)  # once, before the training loop
batch = next(batches)  # in each step, instead of next(iter(loader))
"""


def examine(case: Case) -> Outcomes:
    a_pass, passes = batches_a_pass(case), case.loader.epochs.rows
    startup = measured(startup_ns(case.loader))
    if a_pass is None or not len(startup):
        return
    begin_us = float(np.median(startup)) / 1e3
    evidence: Evidence = {
        "iterators": count(passes),
        "batches per iterator": figure(a_pass),
        "from iter() to its first batch": us(begin_us),
    }
    # Short data sets make short passes too: those end by themselves.
    left_early = float(np.mean(case.loader.epochs["how"] != 1)) >= LEFT_EARLY
    if a_pass < LEAST_PASS and passes >= LEAST_PASSES and left_early:
        yield _one_iterator(case, evidence, begin_us, a_pass)
    starts = case.report.basis.epoch_start_share or 0.0
    if a_pass < LEAST_PASS or not rebuilt(case.loader.epochs) or starts <= START_SHARE:
        return
    if case.meets("prediction workers"):
        yield case.change(
            persistent_workers=True, then="  # once, outside the loop over epochs\n"
        ).advise(
            "Build the loader once, and keep its workers",
            f"The loader was built again for every pass, which costs {us(begin_us)} each time: "
            f"{percent(starts)} of all time. Options that last from one pass to the next cannot "
            "work.",
            {**evidence, "epoch starts after the first": percent(starts)},
            caveat="Changes made to the data set between epochs no longer reach the workers.",
        )


def _one_iterator(case: Case, evidence: Evidence, begin_us: float, a_pass: float) -> Advice:
    order = "some samples come again before others have come at all"
    if str(case.config.get("sampler")).endswith("SequentialSampler"):
        order = "the same first samples come every time"
    code = "\n\n".join([f"{loader_code(case)}\n", definitions("samplers", "endless"), _USE])
    return case.change(code=code, predicted=SAME).advise(
        "Keep the iterator instead of making one for every step",
        f"iter(loader) was called {evidence['iterators']} times for {count(case.loader.count)} "
        f"batches. Each takes {us(begin_us)} to its first batch, and restarts the data: {order}.",
        evidence,
        caveat="Training then sees the data in whole passes: compare its results with those of "
        "whole passes.",
        # The order of the data is wrong at any speed, and such a run has no steady batches.
        kind="correctness",
    )
