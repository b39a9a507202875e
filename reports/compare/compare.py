"""Two runs side by side: what became faster or slower, how sure that is, and what was configured
differently.

The uncertainty of each figure is taken between blocks of consecutive steady batches, as the
verdict's is: a loop's steps come in runs of alike batches. It covers the variation within the two
runs, not what differs from one run to the next (a warm page cache, another user on the machine).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from ...advisors.schema.report_model import Basis, LoaderReport, Report, Scalar
from ...advisors.stage_model.verdict import MINIMUM_BATCHES
from ...profiler.store.run.run import LoaderRun, Run
from ..words.matching import recorded
from .compare_blocks import Side, quantile
from .compare_model import (
    SCHEMA,
    Comparison,
    Difference,
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


def compare(before: Report, before_run: Run, after: Report, after_run: Run) -> Comparison:
    """What differs between two runs. Loaders are paired by name and, where one
    rank alone had them, by rank, those left over by their order."""
    first, second = recorded(before, before_run), recorded(after, after_run)
    pairs, only_before, only_after = _paired(
        [each for each, _ in first], [each for each, _ in second]
    )
    with np.errstate(all="ignore"):  # damaged columns may hold any number
        loaders = [_loader(*first[i], *second[j]) for i, j in pairs]
    notes = [
        f"the {word} run is {report.run.state}"
        for word, report in (("first", before), ("second", after))
        if report.run.state in ("live", "crashed")
    ]
    return Comparison(
        schema=SCHEMA,
        before=before.run.id,
        after=after.run.id,
        loaders=tuple(loaders),
        settings=tuple(_differing(_run_facts(before), _run_facts(after))),
        only_before=tuple(only_before),
        only_after=tuple(only_after),
        notes=tuple(notes),
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
    return min(known, key=lambda item: item[1]) if known else None


def _paired(
    first: list[LoaderReport], second: list[LoaderReport]
) -> tuple[list[tuple[int, int]], list[str], list[str]]:
    left = list(range(len(second)))
    pairs, unpaired = [], []
    for i, each in enumerate(first):
        same = next(
            (j for j in left if (second[j].name, _rank(second[j])) == (each.name, _rank(each))),
            None,
        )
        if same is None:
            unpaired.append(i)
        else:
            left.remove(same)
            pairs.append((i, same))
    alone = []
    for i in unpaired:  # a loader may have another name since its data set has one
        same = next((j for j in left if _rank(second[j]) == _rank(first[i])), None)
        if same is None:
            alone.append(first[i].name)
        else:
            left.remove(same)
            pairs.append((i, same))
    return sorted(pairs), alone, [second[j].name for j in left]


def _rank(loader: LoaderReport) -> int | None:
    """None for a section of all ranks: whose figures it shows depends on who was the slowest."""
    return None if loader.ranks is not None else loader.rank


def _loader(
    before: LoaderReport, columns: LoaderRun | None, after: LoaderReport, others: LoaderRun | None
) -> LoaderComparison:
    sides = [Side(each) if each is not None else None for each in (columns, others)]
    a, b = sides
    sizes = [side.samples_per_batch for side in sides if side is not None]
    of_samples = len(sizes) == 2 and None not in sizes
    alike = not of_samples or math.isclose(*(size or 0.0 for size in sizes), rel_tol=0.01)
    notes = []
    if before.name != after.name:
        notes.append(f"the loaders have different names: {before.name} and {after.name}")
    if before.folded_batches or after.folded_batches:
        notes.append("older batches are kept as totals only: the differences rest on the newest")
    if not alike:
        notes.append("the batches are of different sizes: times are given a sample")
    return LoaderComparison(
        name=after.name,
        rank=after.rank,
        per="batch" if alike else "sample",
        unit="samples/s" if of_samples else "batches/s",
        throughput=_throughput(a, b, of_samples),
        stall_share=_stall(before, after),
        verdict_before=before.verdict,
        verdict_after=after.verdict,
        stages=dict(_stages(a, b, by_sample=not alike)) if a is not None and b is not None else {},
        settings=tuple(_differing(dict(before.config), dict(after.config))),
        notes=tuple(notes),
    )


def _throughput(before: Side | None, after: Side | None, of_samples: bool) -> Difference:
    if before is None or after is None:
        return _unknown("the run's columns are not at hand")
    a, b = (side.mean(side.lost.step, of_samples) for side in (before, after))
    if a is None or b is None or a.value <= 0 or b.value <= 0:
        return _unknown(
            f"fewer than {MINIMUM_BATCHES} steady batches were recorded (the first of an epoch is "
            "not one)"
        )
    errors = (a.error / a.value, b.error / b.value)
    spread = quantile(_Z_ONE, errors, (a.freedom, b.freedom)) * math.hypot(*errors)
    factor = a.value / b.value
    low, high = factor * math.exp(-spread), factor * math.exp(spread)
    real = not low <= 1 <= high and abs(factor - 1) >= SMALLEST
    return Difference(1e9 / a.value, 1e9 / b.value, factor, low, high, real)


def _stall(before: LoaderReport, after: LoaderReport) -> ShareDifference:
    a, b = before.basis, after.basis
    if a.stall_share is None or b.stall_share is None:
        return ShareDifference(
            a.stall_share, b.stall_share, None, None, None, None, "too short to say"
        )
    if a.lost != b.lost:
        why = "measured by device events in one run only"
        return ShareDifference(a.stall_share, b.stall_share, None, None, None, None, why)
    change, spread = b.stall_share - a.stall_share, math.hypot(_half_range(a), _half_range(b))
    real = abs(change) > spread and abs(change) >= SMALLEST
    return ShareDifference(
        a.stall_share, b.stall_share, change, change - spread, change + spread, real
    )


def _half_range(basis: Basis) -> float:
    """The greater half of the verdict's range: the other one may be cut at 0 or 1."""
    share = basis.stall_share or 0.0
    low = 0.0 if basis.stall_share_low is None else basis.stall_share_low
    high = 1.0 if basis.stall_share_high is None else basis.stall_share_high
    return max(share - low, high - share)


def _stages(before: Side, after: Side, by_sample: bool) -> Iterator[tuple[str, StageDifference]]:
    for name in STAGES:
        means = []
        for side in (before, after):
            values = side.loader.batches[f"{name}_ns"]
            means.append(side.mean(values.astype(np.float64), by_sample, values >= 0))
        a, b = means
        if a is None and b is None:
            continue
        if a is None or b is None:
            one = tuple(mean.value / 1e3 if mean is not None else None for mean in means)
            yield name, StageDifference(one[0], one[1], None, None, None, None)
            continue
        change = b.value - a.value
        errors = (a.error, b.error)
        spread = quantile(_Z_MANY, errors, (a.freedom, b.freedom)) * math.hypot(*errors)
        real = abs(change) > spread and abs(change) >= SMALLEST * max(a.value, b.value)
        yield (
            name,
            StageDifference(
                a.value / 1e3,
                b.value / 1e3,
                change / 1e3,
                (change - spread) / 1e3,
                (change + spread) / 1e3,
                real,
            ),
        )


def _unknown(reason: str) -> Difference:
    return Difference(None, None, None, None, None, None, reason)


def _differing(before: Mapping[str, Scalar], after: Mapping[str, Scalar]) -> Iterator[Setting]:
    for name in dict.fromkeys([*before, *after]):
        a, b = before.get(name), after.get(name)
        if a != b or type(a) is not type(b):
            yield Setting(name, a, b)


def _run_facts(report: Report) -> dict[str, Scalar]:
    """What two runs may differ in besides their loaders, and what may explain a difference."""
    run, system = report.run, report.system
    return {
        "command": " ".join(run.argv) or None,
        "host": run.host,
        "devices": ", ".join(run.devices) or None,
        "processes": run.processes,
        "world size": run.world_size,
        "effective CPUs": system.effective_cpus,
        "cores": system.cores_logical,
        "memory": system.mem_total_bytes,
        "platform": run.platform,
        "Python": run.python,
        "torch": run.torch,
        "Loaderscope": run.loaderscope,
    }
