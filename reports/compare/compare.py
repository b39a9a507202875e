"""Two runs side by side: what became faster or slower, how sure that is, and what was configured
differently.

The uncertainty of each figure is taken between blocks of consecutive steady batches, as the
verdict's is: a loop's steps come in runs of alike batches. It covers the variation within the two
runs, not what differs from one run to the next (a warm page cache, another user on the machine).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

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
    ShareDifference,
    StageDifference,
)

# Smaller differences are real at times, but nobody acts on them; clocks and rounding make as much.
SMALLEST = 0.01
# One figure decides on throughput: 19 times in 20. Of a dozen stages one in 20 would differ by
# chance: 99 in 100.
_Z_ONE, _Z_MANY = 1.960, 2.576

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
        (each, each.throughput.factor if each.throughput.real else 1.0)
        for each in comparison.loaders
        if each.throughput.factor is not None and each.throughput.real is not None
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
        "older batches are kept as totals only: the differences rest on the newest": (
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
    reason = "the run's columns are not at hand"
    if before and after:
        a, b = (side.mean(side.lost.step, of_samples) for side in (before, after))
        if a and b and a.value > 0 and b.value > 0:
            errors = (a.error / a.value, b.error / b.value)
            spread = math.exp(_spread(_Z_ONE, errors, a, b))
            factor = a.value / b.value
            low, high = factor / spread, factor * spread
            real = not low <= 1 <= high and abs(factor - 1) >= SMALLEST
            return Difference(1e9 / a.value, 1e9 / b.value, factor, low, high, real)
        reason = (
            f"fewer than {MINIMUM_BATCHES} steady batches were recorded (the first of an epoch is "
            "not one)"
        )
    return Difference(reason=reason)


def _spread(z: float, errors: tuple[float, float], a: Mean, b: Mean) -> float:
    return quantile(z, errors, (a.freedom, b.freedom)) * math.hypot(*errors)


def _stall(a: Basis, b: Basis) -> ShareDifference:
    shares = (a.stall_share, b.stall_share)
    if a.stall_share is None or b.stall_share is None:
        return ShareDifference(*shares, reason="too short to say")
    if a.lost != b.lost:
        return ShareDifference(*shares, reason="measured by device events in one run only")
    change, spread = b.stall_share - a.stall_share, math.hypot(_half_range(a), _half_range(b))
    low, high, real = _sure(change, spread, SMALLEST)
    return ShareDifference(*shares, change, low, high, real)


def _half_range(basis: Basis) -> float:
    """The greater half of the verdict's range: the other one may be cut at 0 or 1."""
    ends = (basis.stall_share_low, basis.stall_share_high)
    return max(abs((end or 0.0) - (basis.stall_share or 0.0)) for end in ends)


def _stages(before: Side, after: Side, by_sample: bool) -> Iterator[tuple[str, StageDifference]]:
    for name in STAGES:
        a, b = (
            side.mean(side.loader.column(f"{name}_ns") / 1e3, by_sample) for side in (before, after)
        )
        if a and b:
            change, spread = b.value - a.value, _spread(_Z_MANY, (a.error, b.error), a, b)
            sure = _sure(change, spread, SMALLEST * max(a.value, b.value))
            yield name, StageDifference(a.value, b.value, change, *sure)
        elif a is not b:
            before_us, after_us = (each.value if each else None for each in (a, b))
            yield name, StageDifference(before_us, after_us)


def _sure(change: float, spread: float, least: float) -> tuple[float, float, bool]:
    """The range of a change, and whether it is real: beyond chance, and worth acting on."""
    real = abs(change) > spread and abs(change) >= least
    return change - spread, change + spread, real


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


@dataclass(frozen=True)
class Mean:
    """A ratio of sums with its standard error between blocks, and the blocks' degrees of
    freedom."""

    value: float
    error: float
    freedom: int


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

    def mean(self, values: Floats, by_sample: bool) -> Mean | None:
        """Σ values / Σ batches (or samples) over the steady rows in which they were measured; None
        where there are too few of them."""
        rows = self.steady & np.isfinite(values)
        top = values[rows]
        if len(top) < MINIMUM_BATCHES:
            return None
        below = self.samples[rows] if by_sample and self.samples is not None else np.ones(len(top))
        blocks = block_sums(top)
        value, error = ratio(blocks, block_sums(below))
        return Mean(value, error, len(blocks) - 1)


def quantile(z: float, errors: tuple[float, float], freedom: tuple[int, int]) -> float:
    """Student's t for the normal quantile `z`, with the degrees of freedom of two means (Welch and
    Satterthwaite).

    The expansion is Abramowitz and Stegun's 26.7.5; from three degrees on it is within a percent or
    two.
    """
    squares = [error**2 for error in errors]
    below = sum(square**2 / n for square, n in zip(squares, freedom, strict=True))
    n = sum(squares) ** 2 / below if below > 0 else float(sum(freedom))
    return z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
