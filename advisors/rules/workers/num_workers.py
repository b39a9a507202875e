"""How many workers this machine needs: more, fewer, or none.

What it looks for
    The what-if model runs the loader with 0, 1, 2, 3, 4, 6, 8, … workers, from what fetching,
    collating and handing over took here and from the CPUs this process may use (affinity, container
    quota, ranks on the host). It advises the smallest number within 2 % of the best (WITHIN).

Why it matters
    Workers make batches beside the training loop and beside each other. But every batch they make
    has to be serialised, sent and rebuilt, and they share the CPUs: "num_workers = cpu_count" is
    wrong wherever ranks, affinity or a quota leave fewer CPUs, and where a batch takes less time to
    make than to hand over.

What to change
    Set num_workers to the number named. Fetching that mostly waits (CPU time below 50 % of its wall
    time, LATENCY_BOUND_BELOW) may use more workers than CPUs; computing may not.

When not to
    Each worker holds its own copy of what the data set caches, and more batches lie in shared
    memory. Each worker has its own stream of random numbers, so random augmentation differs from a
    run with another number. An iterable data set must share its stream out among the workers first.
    A file that is open when workers are forked has one position for all of them: where fetching was
    seen to move it in the training process, the code opens it again in each worker.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...case.advice import SAME, WITHIN, Advice, Outcome, Proposal, Unmeasured, smallest
from ...case.case import Case
from ...case.code_text import Source
from ...case.evidence import (
    LATENCY_BOUND_BELOW,
    contended,
    cpu_over_wall,
    hand_over_us,
    making_us,
    over_budget,
    rebuilt,
    start_method,
)
from ...code.loader_code import loader_code
from ...code.loader_form import arguments_of, form_of
from ...code.template import whole
from ...schema.figures import count, figure, percent, us
from ...schema.gains import LEAST_GAIN

NAME = "num-workers"
KIND = "speed"
EFFORT = "one argument"

CANDIDATES = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
# What people try where nobody told them better.
USUAL = 4
KEPT_CAVEAT = "Workers that are kept do not see what is changed in the data set between epochs."
# An iterator that asks which worker it runs in is taken to share its stream out.
SHARDS = ("get_worker_info", "split_dataset_by_node", "worker_id")


def examine(case: Case) -> Iterator[Outcome]:
    if case.loader.kind != "dataloader" or case.whatif is None:
        return
    making = making_us(case)
    if making is None:
        return
    if case.cpus is None:
        yield Unmeasured(
            "how many CPUs this process may use is not known: record with the system sampler on"
        )
        return
    if case.config.get("dataset_kind") == "iterable" and not _shards(case):
        if not case.num_workers:
            yield Unmeasured(
                "the data set is iterable and does not seem to share its stream out among workers: "
                "with more than one each would read all of it"
            )
        return
    options = _options(case)
    pick, _ = smallest(options)
    effect = options[pick].predicted
    # Too many for the CPUs is what the rule cpu-budget speaks of.
    if pick != case.num_workers and effect.mid > LEAST_GAIN and not (pick and over_budget(case)):
        yield _advice(case, pick, options[pick], making)
        if effect.low <= LEAST_GAIN:
            # it is not certain enough and will be listed as rejected: one such entry is enough
            return
    if case.report.verdict != "compute-bound":
        yield from _rejected(case, pick, options, making)


def _shards(case: Case) -> bool:
    return case.dataset is not None and any(name in case.dataset.names for name in SHARDS)


def most_workers(case: Case) -> int:
    """The largest number worth trying: as many as the CPUs carry, by the CPU time fetching really
    uses."""
    cpus = case.cpus or 1.0
    share = cpu_over_wall(case)
    # A busy machine makes computing look like waiting where waiting for a core, which is no
    # latency, was not counted.
    waiting = case.report.waiting
    counted = waiting is not None and waiting.fetch_core_wait_share is not None
    if share is None or share >= LATENCY_BOUND_BELOW or (contended(case) and not counted):
        return max(1, math.ceil(cpus))
    return min(CANDIDATES[-1], max(math.ceil(cpus), math.ceil(cpus / max(share, 0.01))))


def _options(case: Case) -> dict[int, Proposal]:
    """The change by number of workers. Numbers beyond the best are left out once two in a row bring
    nothing more."""
    top = most_workers(case)
    found = {case.num_workers: case.change(num_workers=case.num_workers, predicted=SAME)}
    best, misses = 1.0, 0
    for n in CANDIDATES:
        if n > top or misses == 2:
            break
        if n not in found:
            found[n] = case.change(num_workers=n, **(_kept(case) if n else {}))
        mid = found[n].predicted.mid
        gained = mid > best * WITHIN
        misses = 0 if gained or n <= case.num_workers else misses + 1
        best = max(best, mid)
    return found


def _kept(case: Case) -> dict[str, Any]:
    """Who gets workers for the first time keeps them between epochs: starting them may cost more
    than they gain."""
    return (
        {}
        if case.num_workers or rebuilt(case) or case.loader.epochs.rows < 2
        else {"persistent_workers": True}
    )


def _advice(case: Case, pick: int, change: Proposal, making: float) -> Advice:
    now = case.num_workers
    more = _kept(case) if pick else {}
    if (
        more
        and (started := case.change(num_workers=pick)).predicted.mid * WITHIN
        >= change.predicted.mid
    ):
        more, change = {}, started  # epochs are long: what their starts cost is nothing
    cost = hand_over_us(case)
    if pick == 0:
        title = "Use no workers: they cost more than they gain"
        why = f"A batch takes {us(making)} to make"
        why += f" and {us(cost)} to hand over from its worker." if cost is not None else "."
    elif pick > now:
        title = f"Use {pick} workers" if pick > 1 else "Use a worker"
        share = cpu_over_wall(case)
        waits = share is not None and share < LATENCY_BOUND_BELOW
        kind = "mostly waiting, not computing" if waits else "computing"
        why = f"A batch takes {us(making)} to make, {kind}, and "
        why += (
            "all of it inside the training loop."
            if not now
            else f"{now} worker{'s' * (now > 1)} cannot keep up."
        )
    else:
        title = f"Use {pick} worker{'s' * (pick > 1)} instead of {now}"
        why = (
            f"{figure(case.cpus or 0)} CPUs carry no more: {now} workers take each other's time, "
            "and the loop's."
        )
    caveat = None
    if pick:
        caveat = (
            "Each worker holds its own copy of what the data set caches, and has its own stream of "
            "random numbers: random augmentation will differ from the run before."
        )
    if more:
        caveat = f"{caveat} {KEPT_CAVEAT}"
    shared = case.loader.looks.moved if start_method(case) == "fork" else ()
    if pick and shared:
        code = whole(
            "apart",
            OWN_INIT=arguments_of(case, form_of(case)).get("worker_init_fn") or "",
            LOADER=loader_code(case, num_workers=pick, worker_init_fn=Source("read_apart"), **more),
        )
        change = replace(change, code=code)
        caveat = f"{_one_position(shared)} {caveat}"
    return change.advise(title, why, _evidence(case, making), caveat=caveat)


def _one_position(shared: tuple[str, ...]) -> str:
    name = Path(shared[0]).name
    others = f" and {count(len(shared) - 1)} more" if len(shared) > 1 else ""
    return (
        f"{name}{others} stays open in the training process, and fetching moves the position in "
        "it. Workers forked after that share it, and would read the bytes of other samples: the "
        "code opens the file again in each worker."
    )


def _evidence(case: Case, making: float) -> dict[str, str]:
    found = {"making a batch": us(making), "effective CPUs": f"{figure(case.cpus or 0)} cores"}
    share, cost = cpu_over_wall(case), hand_over_us(case)
    if share is not None:
        found["CPU over wall time of fetching"] = percent(share)
    if cost is not None:
        found["handing a batch over"] = us(cost)
    compute = case.mean_us("compute")
    if compute is not None:
        found["computing"] = us(compute)
    others = _others(case)
    if others:
        found["other programs"] = f"{figure(others)} of them busy"
    return found


def _others(case: Case) -> float:
    """Cores that other programs keep busy, which workers would have to share; 0 where that is
    nothing."""
    return case.whatif.busy_beside if case.whatif is not None else 0.0


def _rejected(
    case: Case, pick: int, options: dict[int, Proposal], making: float
) -> Iterator[Outcome]:
    """The usual advice, where it would hurt or do nothing: at most one. Who has as many workers
    needs no other number told."""
    now = case.num_workers
    usual = max(USUAL, math.ceil(case.cpus or 1))
    if (
        now >= USUAL
        or usual in (now, pick)
        or (pick > now and usual > pick and not _worse(case, usual, options))
    ):
        return
    effect = (options.get(usual) or case.change(num_workers=usual)).predicted
    change = case.change(num_workers=usual, predicted=effect)
    if effect.mid >= LEAST_GAIN and options[pick].predicted.mid <= LEAST_GAIN:
        yield _uncertain(case, usual, change, making)
        return
    if effect.mid >= (LEAST_GAIN if pick <= now else 1.0):
        return
    cost = hand_over_us(case)
    if now == 0:
        why = (
            f"A batch takes {us(making)} to make, and handing it over from a worker costs more "
            "than that saves"
        )
        others, cpus = _others(case), figure(case.cpus or 0)
        why += (
            f": other programs keep {figure(others)} of the {cpus} CPUs busy already."
            if others
            else "."
        )
    elif cost is not None and cost > making:
        why = f"A batch takes {us(making)} to make and {us(cost)} to hand over."
    elif contended(case):
        why = f"The {figure(case.cpus or 0)} CPUs this process may use are busy already."
    elif usual > most_workers(case):
        why = f"Making batches takes CPU time, and this process has {figure(case.cpus or 0)} CPUs."
    else:
        why = (
            f"{now} worker{'s' * (now > 1)} make{'s' * (now == 1)} batches as fast as the loop "
            "takes them."
        )
    yield change.would_not_help(why, _evidence(case, making))


def _uncertain(case: Case, usual: int, change: Proposal, making: float) -> Advice:
    """What the model predicts and CPUs speak against is said, and not advised."""
    others = _others(case)
    beside = f", {figure(others)} of which other programs keep busy" if others else ""
    return change.would_not_help(
        title=f"Use {usual} workers",
        why="The gain is not certain enough to recommend it: making batches takes CPU time, and "
        f"this process has {figure(case.cpus or 0)} CPUs{beside}.",
        evidence=_evidence(case, making),
    )


def _worse(case: Case, usual: int, options: dict[int, Proposal]) -> bool:
    if usual not in options:
        options[usual] = case.change(num_workers=usual)
    return options[usual].predicted.mid < 1.0
