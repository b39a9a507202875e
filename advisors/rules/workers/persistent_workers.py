"""Keep the workers between epochs.

What it looks for
    Epochs after the first whose start costs more than 5 % of the time (START_SHARE), with workers
    that are started anew each time.

Why it matters
    Starting a worker costs from some milliseconds (fork) to seconds (spawn, forkserver: Python,
    torch and the data set are loaded again), and every epoch then waits for its first batches.
    Short epochs pay this again and again.

What to change
    persistent_workers=True, on a loader that is built once and used for all epochs.

When not to
    With fork and long epochs it makes no difference. The workers' copy of the data set stays as it
    was: changes made to the data set between epochs do not reach them. The workers of each loader
    keep their memory while another loader runs.
"""

from ....profiler.store.run.epoch_ends import rebuilt
from ...case.advice import Outcomes
from ...case.case import Case
from ...case.workers import batches_a_pass, start_method
from ...schema.evidence import count, percent, us
from ...stage_model.measured import mean
from ...stage_model.stages import startup_ns
from ...stage_model.verdict import first_of_epoch

EFFORT = "one argument"
NEEDS = "prediction workers"

# First batches above this part of the time: docs/causes.md, "Workers started anew".
START_SHARE = 0.05
# With fewer batches per pass, iterators are built again and again: the rule loader-rebuilt.
LEAST_PASS = 5
# A sampler that takes half of the start is what makes it slow: the rule sampler.
SAMPLER_SHARE = 0.5


def examine(case: Case) -> Outcomes:
    starts, a_pass = case.report.basis.epoch_start_share, batches_a_pass(case) or 0.0
    startup_mean = mean(startup_ns(case.loader)[1:])
    if (
        case.config.get("persistent_workers") is not False
        or rebuilt(case.loader.epochs)
        or a_pass < LEAST_PASS
    ):
        return
    if starts is None or startup_mean is None or starts <= START_SHARE:
        return
    batches = case.loader.batches
    drawing = mean(batches["index_ns"][first_of_epoch(batches["epoch"])]) or 0.0
    if drawing > SAMPLER_SHARE * startup_mean:
        return
    start = us(startup_mean / 1e3)
    yield case.change(persistent_workers=True).advise(
        "Keep the workers between epochs",
        f"Every epoch restarts its workers and waits {start} for its first batch: "
        f"{percent(starts)} of all time.",
        {
            "an epoch's start": start,
            "epoch starts after the first": percent(starts),
            "epochs": count(case.loader.epochs.rows),
            "batches per epoch": count(a_pass),
            "workers": count(case.num_workers, f"by {start_method(case)}"),
        },
        caveat="Build the loader once, outside the loop over epochs. Changes made to the data set "
        "between epochs no longer reach the workers, and the workers' memory stays in use between "
        "epochs.",
    )
