"""Which settings are tried, and in which order: the best predictions of the what-if model, then
their neighbours."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from ..advisors.schema.gains import LEAST_GAIN
from ..advisors.schema.report_model import Range
from ..advisors.whatif import WhatIf, workload_of
from ..profiler.guard.error_origin import forgiving
from ..profiler.record.device.accelerator import Accelerator, in_use
from ..profiler.record.iterate.watch import current_run_directory, loader_place
from ..profiler.record.session import session as sessions
from ..profiler.store.run.run_reader import open_run
from .evidence.settings import Settings

WORKERS = (0, 1, 2, 3, 4, 6, 8, 12, 16)
PREFETCH = (1, 2, 4, 8)
FIRST = 3  # as many as the model orders; neighbours come after
MOST = 5
# Of two that are expected to be as good, the one with fewer workers and fewer batches ahead.
AS_GOOD = 0.97
NO_GREAT_LOSS = 0.8


@dataclass(frozen=True)
class Candidate:
    settings: Settings
    predicted: Range | None  # None where nothing could be predicted


def candidates_for(loader: Any, own: Settings, cores: int) -> list[Candidate]:
    """The candidates from what was recorded so far, the most promising first; the usual ones if
    that is too little."""
    with forgiving(Exception):  # most often TooLittle
        sessions.flush()
        place = loader_place(loader)
        assert place is not None
        run = open_run(str(current_run_directory()))
        process = next(each for each in run.processes if each.path == place[0])
        recorded = next(each for each in process.loaders if each.index == place[1])
        model = WhatIf(workload_of(run, process, recorded))
        return ordered(own, isinstance(in_use(), Accelerator), model.predict, cores)
    return usual(own, cores)


def usual(own: Settings, cores: int) -> list[Candidate]:
    """The candidates without a prediction."""
    numbers = dict.fromkeys((cores, max(1, cores // 2), 2 * cores))
    found = [replace(own, num_workers=n) for n in numbers if n != own.num_workers]
    return [Candidate(each, None) for each in found]


def ordered(
    own: Settings,
    device: bool,
    predict: Callable[..., Range],
    cores: int,
) -> list[Candidate]:
    """The candidates by their predictions, the most promising first; none if loading is no
    bottleneck. Numbers of workers come first, then other settings combined with the best of those.

    `cores`: one rank's part of them.
    """
    if predict(fetch=0.0, collate=0.0, transfer=0.0).high < LEAST_GAIN:
        return []  # it is not loading that the loop waits for
    found: dict[Settings, Range] = {}

    def add_predictions(settings: Iterable[Settings]) -> None:
        for each in settings:
            if each != own and each not in found:
                found[each] = predict(**each.changed_from(own))

    def near(count: int) -> list[Settings]:
        return [own, *_best(found, own)[:count]]

    most = max(2 * cores, 4, own.num_workers)
    add_predictions(_with_workers(own, n) for n in WORKERS if n <= most)
    with_workers = [each for each in near(2) if each.num_workers]
    add_predictions(replace(each, prefetch_factor=n) for each in with_workers for n in PREFETCH)
    if device:
        add_predictions(replace(each, pin_memory=not own.pin_memory) for each in near(1))
    return [Candidate(each, found[each]) for each in _chosen(own, found)]


def _chosen(own: Settings, found: dict[Settings, Range]) -> list[Settings]:
    chosen: list[Settings] = []
    for each in _best(found, own):
        alike = any(_as_good(each, other, found) for other in (own, *chosen))
        if found[each].high > LEAST_GAIN and not alike:
            chosen.append(each)
    chosen, none = chosen[:FIRST], own.with_workers(0)
    # Of what workers cost the model knows least: where it sees no great loss, they are left out
    # once, before time goes to what is not expected to gain.
    if own.num_workers and none not in chosen and found[none].high > NO_GREAT_LOSS:
        gains = [each for each in chosen if found[each].mid > LEAST_GAIN][: FIRST - 1]
        chosen = [*gains, none, *(each for each in chosen if each not in gains)][:FIRST]
    return chosen


def _as_good(one: Settings, other: Settings, found: dict[Settings, Range]) -> bool:
    """Whether they differ only in what is made ahead, and no gain is predicted for that."""
    same = replace(one, prefetch_factor=other.prefetch_factor) == other
    return same and found[one].mid < LEAST_GAIN * (found[other].mid if other in found else 1.0)


def neighbours(best: Settings, base: Settings, tried: set[Settings], cores: int) -> list[Candidate]:
    """The settings next to the best so far, which was better than `base`: the model may be off by a
    worker or two. Fewer workers come first where fewer were better, and half as many where workers
    share cores already."""
    workers = best.num_workers
    crowded = workers > cores
    more = _with_workers(best, workers + 1)
    fewer = _with_workers(best, workers // 2 if crowded else max(0, workers - 1))
    near = [fewer, more] if crowded or workers < base.num_workers else [more, fewer]
    if workers:
        near.insert(1, replace(best, prefetch_factor=min(PREFETCH[-1], 2 * best.prefetch_factor)))
    return [Candidate(each, None) for each in near if each not in tried]


def _with_workers(settings: Settings, workers: int) -> Settings:
    """So many workers, with as many batches ahead as before where that is possible."""
    kept = settings.with_workers(workers)
    if not workers or kept.ahead >= settings.ahead:
        return kept
    enough = (factor for factor in PREFETCH if workers * factor >= settings.ahead)
    return replace(kept, prefetch_factor=next(enough, PREFETCH[-1]))


def _best(found: dict[Settings, Range], own: Settings) -> list[Settings]:
    """The most promising first; among equals, the cheapest. The model knows no jitter, which
    batches made ahead hide. So fewer workers make as many ahead as the code's own, and one each
    comes last (in grids it was 5 % slower than two: docs/tune-results.md)."""

    def cost(each: Settings) -> tuple[int, int, bool, int]:
        missing = max(0, own.ahead - each.ahead) if each.num_workers < own.num_workers else 0
        return each.num_workers, missing, each.prefetch_factor == 1, each.prefetch_factor

    remaining, order = dict(found), []
    while remaining:
        top = max(each.mid for each in remaining.values())
        good = [each for each, factor in remaining.items() if factor.mid >= AS_GOOD * top]
        order.append(min(good, key=cost))
        del remaining[order[-1]]
    return order
