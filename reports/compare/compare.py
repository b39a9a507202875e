"""Two runs side by side: what became faster or slower, how sure that is, and what was configured
differently.

The uncertainty of each figure is taken between blocks of consecutive steady batches, as the
verdict's is: a loop's steps come in runs of alike batches. It covers the variation within the two
runs, not what differs from one run to the next (a warm page cache, another user on the machine).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from ...advisors.schema.report_model import Basis, LoaderReport, Report, Scalar
from ...advisors.stage_model.block_error import Floats, block_sums, ratio
from ...advisors.stage_model.verdict import MINIMUM_BATCHES, lost_time
from ...profiler.base.metadata import clean
from ...profiler.store.run.run import LoaderRun, Run
from ..words.loaders import recorded, run_facts
from .compare_model import (
    SCHEMA,
    Comparison,
    Difference,
    Followed,
    LoaderComparison,
    Setting,
)

# Smaller differences are real at times, but nobody acts on them; clocks and rounding make as much.
SMALLEST = 0.01
# Half the range, in standard errors: what differs by chance is seldom called different, also of
# a dozen stages. Of 10 blocks and more it holds the truth at least 19 times in 20.
_WIDTH = 2.6

STAGES = (
    "wait",
    "compute",
    "index",
    "fetch",
    "collate",
    "pack",
    "queued",
    "unpack",
    "pin",
    "h2d",
    "compute_device",
)
UNENDED = ("live", "crashed")

Pair = tuple[LoaderReport, LoaderRun | None]


def compare(before: Report, before_run: Run, after: Report, after_run: Run) -> Comparison:
    """What differs between two runs. Loaders are paired by name and, where one
    rank alone had them, by rank, those left over by their order."""
    first, second = recorded(before, before_run), recorded(after, after_run)
    places = _paired(first, second)
    same = before.run.argv[:1] == after.run.argv[:1]
    with np.errstate(all="ignore"):  # damaged columns may hold any number
        loaders = [_loader(*first[i], *second[places[i]], same) for i in sorted(places)]
    left = [each.name for j, (each, _) in enumerate(second) if j not in places.values()]
    runs = (("first", before.run.state), ("second", after.run.state))
    return Comparison(
        schema=SCHEMA,
        before=before.run.id,
        after=after.run.id,
        loaders=tuple(loaders),
        settings=tuple(_differing(_run_facts(before), _run_facts(after))),
        only_before=tuple(each.name for i, (each, _) in enumerate(first) if i not in places),
        only_after=tuple(left),
        notes=tuple(f"the {word} run is {state}" for word, state in runs if state in UNENDED),
    )


def slowest_factor(comparison: Comparison) -> tuple[LoaderComparison, float] | None:
    """The loader whose throughput fell most, with its factor; one without a real difference counts
    as 1.0.

    None where no throughput could be compared.
    """
    known = [
        (each, each.throughput.change if each.throughput.real else 1.0)
        for each in comparison.loaders
        if each.throughput.change is not None
    ]
    return min(known, key=lambda item: item[1], default=None)


def _paired(first: list[Pair], second: list[Pair]) -> dict[int, int]:
    """Place in the first run → place in the second. A loader may have another name since its data
    set has one."""
    found: dict[int, int] = {}
    keys: tuple[Callable[[LoaderReport], object], ...] = (
        lambda each: (each.name, _rank(each)),
        _rank,
    )
    for key in keys:
        for i, (each, _) in enumerate(first):
            left = (j for j in range(len(second)) if j not in found.values())
            same = next((j for j in left if key(second[j][0]) == key(each)), None)
            if i not in found and same is not None:
                found[i] = same
    return found


def _rank(loader: LoaderReport) -> int | None:
    """None for a section of all ranks: whose figures it shows depends on who was the slowest."""
    return None if loader.ranks else loader.rank


def _loader(
    before: LoaderReport,
    columns: LoaderRun | None,
    after: LoaderReport,
    others: LoaderRun | None,
    same_script: bool,
) -> LoaderComparison:
    a, b = (Side(each) if each else None for each in (columns, others))
    sizes = [side.samples_per_batch for side in (a, b) if side]
    of_samples = len(sizes) == 2 and None not in sizes
    alike = not of_samples or math.isclose(*(size or 0.0 for size in sizes), rel_tol=0.01)
    notes = {
        f"the loaders have different names: {before.name} and {after.name}": (
            before.name != after.name
        ),
        "older batches are left out: the differences rest on the newest": (
            before.folded_batches or after.folded_batches
        ),
        "the batches are of different sizes: times are given a sample": not alike,
        _other_data(before, after): _other_data(before, after),
    }
    return LoaderComparison(
        name=after.name,
        rank=after.rank,
        per="batch" if alike else "sample",
        unit="samples/s" if of_samples else "batches/s",
        throughput=_throughput(a, b, of_samples),
        stall_share=_stall(before.basis, after.basis),
        verdict_before=before.verdict,
        verdict_after=after.verdict,
        stages=dict(_stages(a, b, by_sample=not alike)) if a and b else {},
        settings=tuple(_differing(before.config, after.config)),
        notes=tuple(note for note, holds in notes.items() if holds),
        followed=tuple(_followed(before, after, same_script)),
    )


def _other_data(before: LoaderReport, after: LoaderReport) -> str:
    """What tells that the loaders read different data; empty where nothing does."""
    for name, what in (("dataset", "classes"), ("dataset_len", "numbers of samples")):
        a, b = before.config.get(name), after.config.get(name)
        if a != b and None not in (a, b):
            shown = " and ".join(f"{x:,}" if isinstance(x, int) else clean(x, 80) for x in (a, b))
            return f"the data sets differ ({what}: {shown}): a part of the change is theirs"
    return ""


def _followed(before: LoaderReport, after: LoaderReport, same_script: bool) -> Iterator[Followed]:
    """The recommendations of the first run that hold in the second. Without advice of the second,
    and of another script, only those that set arguments can be judged."""
    judged = same_script and bool(after.recommendations or after.rejected or after.unmeasured)
    again = {(each.rule, each.title) for each in after.recommendations}
    reached = {step.advice: step.together for step in before.plan.steps} if before.plan else {}
    for place, each in enumerate(before.recommendations):
        params = each.change.params
        if params:
            done = all(after.config.get(name) == value for name, value in params.items())
        else:
            done = judged and each.effort is not None and (each.rule, each.title) not in again
        if done and each.kind == "speed":
            yield Followed(each.title, each.predicted, reached.get(place, each.predicted))


def _throughput(before: Side | None, after: Side | None, of_samples: bool) -> Difference:
    if not before or not after:
        return Difference(reason="the run's columns are not at hand")
    a, b = (side.mean(side.lost.step, of_samples) for side in (before, after))
    if not a or not b or a[0] <= 0 or b[0] <= 0:
        return Difference(
            reason=f"fewer than {MINIMUM_BATCHES} steady batches were recorded (the first of an "
            "epoch is not one)"
        )
    factor, spread = a[0] / b[0], math.exp(_WIDTH * math.hypot(a[1] / a[0], b[1] / b[0]))
    low, high = factor / spread, factor * spread
    real = not low <= 1 <= high and abs(factor - 1) >= SMALLEST
    return Difference(1e9 / a[0], 1e9 / b[0], factor, low, high, real)


def _stall(a: Basis, b: Basis) -> Difference:
    if a.stall_share is None or b.stall_share is None:
        return Difference(a.stall_share, b.stall_share, reason="too short to say")
    if a.lost != b.lost:
        reason = "measured by device events in one run only"
        return Difference(a.stall_share, b.stall_share, reason=reason)
    spread = math.hypot(_half_range(a), _half_range(b))
    return _difference(a.stall_share, b.stall_share, spread, SMALLEST)


def _half_range(basis: Basis) -> float:
    """The greater half of the verdict's range: the other one may be cut at 0 or 1."""
    ends = (basis.stall_share_low, basis.stall_share_high)
    return max(abs((end or 0.0) - (basis.stall_share or 0.0)) for end in ends)


def _stages(before: Side, after: Side, by_sample: bool) -> Iterator[tuple[str, Difference]]:
    for name in STAGES:
        a, b = (
            side.mean(side.loader.column(f"{name}_ns") / 1e3, by_sample) for side in (before, after)
        )
        if a and b:
            spread, least = _WIDTH * math.hypot(a[1], b[1]), SMALLEST * max(a[0], b[0])
            yield name, _difference(a[0], b[0], spread, least)
        elif a or b:
            yield name, Difference(a[0] if a else None, b[0] if b else None)


def _difference(before: float, after: float, spread: float, least: float) -> Difference:
    """A change is real beyond chance, and where it is worth acting on."""
    change = after - before
    real = abs(change) > spread and abs(change) >= least
    return Difference(before, after, change, change - spread, change + spread, real)


def _differing(before: Mapping[str, Scalar], after: Mapping[str, Scalar]) -> Iterator[Setting]:
    for name in dict.fromkeys([*before, *after]):
        a, b = before.get(name), after.get(name)
        if a != b or type(a) is not type(b):
            yield Setting(name, a, b)


def _run_facts(report: Report) -> dict[str, Scalar]:
    """What may explain a difference."""
    system = report.system
    machine = {
        "effective CPUs": system.effective_cpus,
        "cores": system.cores_logical,
        "memory": system.mem_total_bytes,
    }
    return {**run_facts(report.run), **machine}


class Side:
    """The steady batches of one loader."""

    def __init__(self, loader: LoaderRun) -> None:
        self.loader = loader
        self.lost = lost_time(loader)
        self.steady = self.lost.known & ~self.lost.first
        samples = loader.batches["samples"]
        known = bool(self.steady.any()) and bool(np.all(samples[self.steady] > 0))
        self.samples: Floats | None = samples.astype(np.float64) if known else None

    @property
    def samples_per_batch(self) -> float | None:
        return float(self.samples[self.steady].mean()) if self.samples is not None else None

    def mean(self, values: Floats, by_sample: bool) -> tuple[float, float] | None:
        """Σ values / Σ batches (or samples) over the steady rows in which they were measured, and
        its standard error between blocks; None where there are too few rows."""
        rows = self.steady & np.isfinite(values)
        top = values[rows]
        if len(top) < MINIMUM_BATCHES:
            return None
        below = self.samples[rows] if by_sample and self.samples is not None else np.ones(len(top))
        return ratio(block_sums(top), block_sums(below))
