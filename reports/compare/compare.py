"""Two runs side by side: how much faster or slower, how sure that is, and what was configured
differently.

The uncertainty of the throughput is taken between blocks of consecutive steady batches, as the
verdict's is: a loop's steps come in runs of alike batches. It covers the variation within the two
runs, not what differs from one run to the next (a warm page cache, another user on the machine).
"""

import math
from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np

from ...advisors.schema.report_model import LoaderReport, Range, Report
from ...advisors.stage_model.block_error import block_sums, ratio
from ...advisors.stage_model.verdict import MINIMUM_BATCHES, lost_time
from ...profiler.base.arrays import Floats
from ...profiler.base.metadata import Scalar, Scalars
from ...profiler.store.run.run import LoaderRun, Run
from ..words.glosses import GLOSSES
from ..words.loaders import recorded, run_facts
from .compare_model import SCHEMA, Comparison, LoaderComparison, Setting, Throughput

# Smaller differences are real at times, but nobody acts on them; clocks and rounding make as much.
SMALLEST = 0.01
# Half the range, in standard errors. Of 10 blocks and more it holds the truth at least 19 times in
# 20.
_WIDTH = 2.6
UNENDED = ("live", "crashed")

Pair = tuple[LoaderReport, LoaderRun | None]


def compare(before: Report, before_run: Run, after: Report, after_run: Run) -> Comparison:
    """What differs between two runs. Loaders are paired by name and, where one
    rank alone had them, by rank, those left over by their order."""
    first, second = recorded(before, before_run), recorded(after, after_run)
    places = _paired(first, second)
    with np.errstate(all="ignore"):  # damaged columns may hold any number
        loaders = [_loader(*first[i], *second[places[i]]) for i in sorted(places)]
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
        (each, each.throughput.factor.mid if each.throughput.real else 1.0)
        for each in comparison.loaders
        if each.throughput.factor
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
) -> LoaderComparison:
    notes = {
        f"the loaders have different names: {before.name} and {after.name}": (
            before.name != after.name
        ),
        "older batches are left out: the throughput rests on the newest": (
            before.folded_batches or after.folded_batches
        ),
    }
    stages = {
        name: tuple(
            each.stages[name].mean_us if name in each.stages else None for each in (before, after)
        )
        for name in GLOSSES
    }
    return LoaderComparison(
        name=after.name,
        rank=after.rank,
        throughput=_throughput(columns, others),
        stall_share=(before.basis.stall_share, after.basis.stall_share),
        verdicts=(before.verdict, after.verdict),
        stages_us={name: (a, b) for name, (a, b) in stages.items() if a or b},
        settings=tuple(_differing(before.config, after.config)),
        notes=tuple(note for note, holds in notes.items() if holds),
    )


def _throughput(before: LoaderRun | None, after: LoaderRun | None) -> Throughput:
    if not before or not after:
        return Throughput("batches/s", reason="the run's columns are not at hand")
    first, second = _steady(before), _steady(after)
    of_samples = all(bool(np.all(samples > 0)) for _, samples in (first, second))
    unit: Literal["batches/s", "samples/s"] = "samples/s" if of_samples else "batches/s"
    a, b = (
        ratio(block_sums(step), block_sums(samples if of_samples else np.ones(len(step))))
        if len(step) >= MINIMUM_BATCHES
        else (0.0, 0.0)
        for step, samples in (first, second)
    )
    if a[0] <= 0 or b[0] <= 0:
        return Throughput(
            unit,
            reason=f"fewer than {MINIMUM_BATCHES} steady batches were recorded (the first of an "
            "epoch is not one)",
        )
    factor, spread = a[0] / b[0], math.exp(_WIDTH * math.hypot(a[1] / a[0], b[1] / b[0]))
    found = Range(factor / spread, factor, factor * spread)
    real = not found.low <= 1 <= found.high and abs(factor - 1) >= SMALLEST
    return Throughput(unit, 1e9 / a[0], 1e9 / b[0], found, real)


def _steady(loader: LoaderRun) -> tuple[Floats, Floats]:
    """The length and the samples of each steady step."""
    lost = lost_time(loader)
    rows = lost.known & ~lost.first & np.isfinite(lost.step)
    return lost.step[rows], loader.batches["samples"][rows].astype(np.float64)


def _differing(before: Scalars, after: Scalars) -> Iterator[Setting]:
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
