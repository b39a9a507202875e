"""How many workers this machine needs: more, fewer, or none.

What it looks for
    The what-if model runs the loader with 0, 1, 2, 3, 4, 6, 8, … workers, from what fetching,
    collating and handing over took here and from the CPUs this process may use (affinity, container
    quota, ranks on the host). It advises the smallest number within 2 % of the best (WITHIN).

Why it matters
    Workers make batches in parallel with the training loop and with each other. But every batch has
    to be serialised, sent and rebuilt, and workers share the CPUs. So "num_workers = cpu_count" is
    wrong if ranks, affinity or a quota leave fewer CPUs, or if a batch takes less time to make than
    to hand over.

What to change
    Set num_workers to the number named. Fetching that mostly waits (CPU time below 50 % of its wall
    time, LATENCY_BOUND_BELOW) for a network, a disk or a timer may use more workers than CPUs.
    Computing may not, nor may waiting for a lock that workers share, for the interpreter, or for
    other processes that compute: stack samples show which it is. Where they do not, the range of
    the gain includes none.

When not to
    Each worker holds its own copy of what the data set caches, and more batches lie in shared
    memory. Each worker has its own stream of random numbers, so random augmentation differs from a
    run with another number. An iterable data set must first divide its stream among the workers. A
    file that is open when workers are forked has one position for all of them. If fetching was seen
    to move it in the training process, the code opens it again in each worker.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from ....profiler.store.run.epoch_ends import rebuilt
from ...case.advice import SAME, WITHIN, Advice, Outcomes, Unmeasured, smallest
from ...case.case import Case
from ...case.code_text import Source
from ...case.workers import (
    LATENCY_BOUND_BELOW,
    WAITS_FOR,
    contended,
    cpu_over_wall,
    crowded,
    making_figures,
    over_budget,
    start_method,
    waits_of,
)
from ...code.loader_code import loader_code
from ...code.loader_form import arguments_of, form_of
from ...code.template import whole
from ...schema.evidence import Evidence, count, figure, percent, us
from ...schema.gains import LEAST_GAIN

EFFORT = "one argument"
NEEDS = "DataLoader prediction"

CANDIDATES = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
# What people try first.
USUAL = 4
KEPT_CAVEAT = "Persistent workers do not see changes made to the data set between epochs."
OWN_COPIES = (
    "Each worker holds its own copy of what the data set caches, and has its own stream of random "
    "numbers: random augmentation will differ from the run before."
)
ONE_POSITION = (
    "stays open in the training process, and fetching moves the position in it. Workers forked "
    "after that share it, and would read the bytes of other samples: the code opens the file again "
    "in each worker."
)
# From this part of making a batch on, waiting of unknown kind is worth saying.
UNKNOWN_FROM = 0.2
UNSEEN = (
    "What it waits for is not known: workers may block each other. `loaderscope tune` measures it."
)
# An iterator that asks which worker it runs in is taken to divide its stream.
SHARDS = frozenset({"get_worker_info", "split_dataset_by_node", "worker_id"})


def examine(case: Case) -> Outcomes:
    if case.making_us is None:
        return
    if case.cpus is None:
        yield Unmeasured(
            "how many CPUs this process may use is not known: record with the system sampler on"
        )
        return
    shards = case.dataset is not None and SHARDS & set(case.dataset.names)
    if case.meets("stream") and not shards:
        if not case.num_workers:
            yield Unmeasured(
                "the data set is iterable and does not seem to divide its stream among workers: "
                "with more than one, each would read all of it"
            )
        return
    options = _options(case)
    pick, _ = smallest(options)
    effect = options[pick].predicted
    # The rule cpu-budget speaks of too many workers for the CPUs.
    if pick != case.num_workers and effect.mid > LEAST_GAIN and not (pick and over_budget(case)):
        yield _advice(case, pick, options[pick])
        if effect.low <= LEAST_GAIN:
            return  # it will be listed as rejected, as not certain enough: one such entry is enough
    if not case.compute_bound:
        yield from _rejected(case, pick, options)


def most_workers(case: Case) -> int:
    """The most that is worth trying: what the CPUs carry, by the CPU time fetching really uses."""
    cpus, share = case.cpus or 1.0, cpu_over_wall(case)
    # If waiting for a core was not counted, computing on a busy machine looks like latency.
    counted = case.waiting.fetch_core_wait_share is not None
    if share is None or share >= LATENCY_BOUND_BELOW or (contended(case) and not counted):
        return max(1, math.ceil(cpus))
    return min(CANDIDATES[-1], max(math.ceil(cpus), math.ceil(cpus / max(share, 0.01))))


def _options(case: Case) -> dict[int, Advice]:
    """The change by number of workers, without numbers beyond two in a row that gain nothing."""
    top = most_workers(case)
    found = {case.num_workers: case.change(num_workers=case.num_workers, predicted=SAME)}
    best, misses = 1.0, 0
    for n in CANDIDATES:
        if n > top or misses == 2:
            break
        if n not in found:
            found[n] = case.change(num_workers=n, **_kept(case, n))
        mid = found[n].predicted.mid
        misses = 0 if mid > best * WITHIN or n <= case.num_workers else misses + 1
        best = max(best, mid)
    return found


def _kept(case: Case, workers: int) -> dict[str, Any]:
    """A loader that gets its first workers keeps them between epochs: starting them may cost more
    than they gain."""
    if (
        not workers
        or case.num_workers
        or rebuilt(case.loader.epochs)
        or case.loader.epochs.rows < 2
    ):
        return {}
    return {"persistent_workers": True}


def _advice(case: Case, pick: int, change: Advice) -> Advice:
    now, more, making = case.num_workers, _kept(case, pick), us(case.making_us)
    if more:
        started = case.change(num_workers=pick)
        if started.predicted.mid * WITHIN >= change.predicted.mid:
            more, change = {}, started  # epochs are long: their starts cost nothing
    if pick == 0:
        title = "Use no workers: they cost more than they gain"
        cost = case.hand_over_us
        handed = f" and {us(cost)} to hand over from its worker" if cost is not None else ""
        why = f"A batch takes {making} to make{handed}."
    elif pick > now:
        title = f"Use {pick} workers" if pick > 1 else "Use a worker"
        share = cpu_over_wall(case)
        idle = 1 - share if share is not None else 1.0  # waiting for a core is no waiting here
        kind = "computing"
        if share is not None and share < LATENCY_BOUND_BELOW:
            seen = (WAITS_FOR[each.kind] for each in waits_of(case) if each.kind in WAITS_FOR)
            kind = f"{' '.join(['mostly waiting', *list(seen)[:1]])}, not computing"
        late = f"{_workers(now)} cannot keep up" if now else "all of it inside the training loop"
        why = f"A batch takes {making} to make, {kind}, and {late}."
        if min(case.whatif.unknown_share if case.whatif is not None else 0.0, idle) > UNKNOWN_FROM:
            why += f" {UNSEEN}"
    else:
        title, why = f"Use {_workers(pick)} instead of {now}", crowded(case)
    caveats = []
    shared = case.loader.looks.moved if pick and start_method(case) == "fork" else ()
    if shared:
        init = arguments_of(case, form_of(case)).get("worker_init_fn") or ""
        call = loader_code(case, num_workers=pick, worker_init_fn=Source("read_apart"), **more)
        change = replace(change, code=whole("apart", OWN_INIT=init, LOADER=call))
        others = f" and {count(len(shared) - 1)} more" if len(shared) > 1 else ""
        caveats.append(f"{Path(shared[0]).name}{others} {ONE_POSITION}")
    if pick:
        caveats.append(OWN_COPIES)
    if more:
        caveats.append(KEPT_CAVEAT)
    return change.advise(title, why, _evidence(case), caveat=" ".join(caveats) or None)


def _workers(number: int) -> str:
    return f"{number} worker{'s' * (number != 1)}"


def _evidence(case: Case) -> Evidence:
    return {
        **making_figures(case),
        "computing": us(case.mean_us("compute")),
    }


def _rejected(case: Case, pick: int, options: dict[int, Advice]) -> Outcomes:
    """The usual advice, if it would hurt or do nothing. A loader that has as many workers needs no
    other number."""
    now, usual = case.num_workers, max(USUAL, math.ceil(case.cpus or 1))
    if now >= USUAL or usual in (now, pick):
        return
    effect = (options.get(usual) or case.change(num_workers=usual)).predicted
    if usual > pick > now and effect.mid >= 1.0:
        return
    change = case.change(num_workers=usual, predicted=effect)
    if effect.mid >= LEAST_GAIN and options[pick].predicted.mid <= LEAST_GAIN:
        # The model predicts a gain, and the CPUs speak against it.
        yield change.would_not_help(
            "The gain is not certain enough to recommend it: making batches takes CPU time, and "
            f"this process has {figure(case.cpus or 0)} CPUs.",
            _evidence(case),
            title=f"Use {usual} workers",
        )
    elif effect.mid < (LEAST_GAIN if pick <= now else 1.0):
        yield change.would_not_help(_why_not(case, usual), _evidence(case))


def _why_not(case: Case, usual: int) -> str:
    now, cost, cpus = case.num_workers, case.hand_over_us, figure(case.cpus or 0)
    making = us(case.making_us)
    if now == 0:
        busy = case.whatif is not None and case.whatif.busy_beside
        beside = ", beside other programs," if busy else ""
        return (
            f"A batch takes {making} to make, and handing it over from a worker{beside} costs more "
            "than that saves."
        )
    if (cost or 0.0) > (case.making_us or 0.0):
        return f"A batch takes {making} to make and {us(cost)} to hand over."
    lock = next((each for each in waits_of(case) if each.kind == "lock"), None)
    if lock is not None and lock.processes > 1:
        waiting, share = count(lock.processes), percent(lock.share)
        return f"{waiting} workers wait for one lock, {share} of fetching: more would wait too."
    if contended(case):
        return f"The {cpus} CPUs this process may use are busy already."
    if usual > most_workers(case):
        return f"Making batches takes CPU time, and this process has {cpus} CPUs."
    return f"{_workers(now)} make{'s' * (now == 1)} batches as fast as the loop takes them."
