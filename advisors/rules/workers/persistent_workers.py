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
    With fork and long epochs it makes no difference. What the workers' copy of the data set holds
    stays as it was: changes made to the data set between epochs do not reach them. The workers of
    each loader keep their memory while another loader runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...case.advice import Outcome
from ...case.case import Case
from ...case.evidence import batches_a_pass, rebuilt, start_method
from ...schema.figures import count, percent, us
from ...schema.gains import LEAST_GAIN
from ...stage_model.measured import mean, measured
from ...stage_model.stages import startup_ns
from ...stage_model.verdict import first_of_epoch

NAME = "persistent-workers"
KIND = "speed"
EFFORT = "one argument"

# First batches above this part of the time: docs/causes.md, "Workers started anew".
START_SHARE = 0.05
# Epoch starts below this are nothing anyone would notice.
NO_DIFFERENCE = 0.01
# Fewer batches a pass than this is an iterator built again and again: the rule loader-rebuilt
# speaks of it.
LEAST_PASS = 5
# A sampler that takes half of the start is what makes it slow (the rule sampler).
SAMPLER_SHARE = 0.5


def examine(case: Case) -> Iterator[Outcome]:
    if (
        not case.num_workers
        or case.config.get("persistent_workers") is not False
        or case.whatif is None
    ):
        return
    starts, a_pass = case.report.basis.epoch_start_share, batches_a_pass(case)
    if starts is None or a_pass is None or a_pass < LEAST_PASS or rebuilt(case):
        return
    startup = measured(startup_ns(case.loader)[1:])
    if not len(startup) or _by_sampler(case, float(startup.mean())):
        return
    method = start_method(case)
    evidence = {
        "an epoch's start": us(float(startup.mean()) / 1e3),
        "epoch starts after the first": percent(starts),
        "epochs": count(case.loader.epochs.rows),
        "batches an epoch": count(a_pass),
        "workers": f"{case.num_workers}, by {method}",
    }
    change = case.change(persistent_workers=True)
    if starts > START_SHARE:
        yield change.advise(
            title="Keep the workers between epochs",
            why=f"Every epoch starts its workers anew and waits {us(float(startup.mean()) / 1e3)} "
            f"for its first batch: {percent(starts)} of all time.",
            evidence=evidence,
            caveat="Build the loader once, outside the loop over epochs. Changes made to the data "
            "set between epochs no longer reach the workers, and the workers' memory stays in use "
            "between epochs.",
        )
    elif (
        starts < NO_DIFFERENCE
        and method == "fork"
        and case.report.verdict == "input-bound"
        and change.predicted.mid < LEAST_GAIN
    ):
        yield change.would_not_help(
            f"Starting {case.num_workers} forked workers costs {us(float(startup.mean()) / 1e3)} "
            f"an epoch, {percent(starts)} of all time.",
            evidence,
        )


def _by_sampler(case: Case, startup_mean_ns: float) -> bool:
    batches = case.loader.batches
    index = mean(batches["index_ns"][first_of_epoch(batches["epoch"])])
    return index is not None and index > SAMPLER_SHARE * startup_mean_ns
