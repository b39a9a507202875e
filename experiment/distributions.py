"""Whether random batches of two sides are of one distribution."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import Any

import numpy as np

from .fingerprint import SIZE

Rows = dict[str, list[list[float]]]

FALSE_ALARMS = 0.01  # of all comparisons of a trial together
FIGURES = (": means of rows", ": standard deviations of rows")
FARTHEST = 1e30  # of figures; what is no number lies there


def distributions_differ(
    before: Sequence[Rows], after: Sequence[Rows], parts: Sequence[Sequence[Any]]
) -> str | None:
    """What differs: where parts of batches are and of what dtype, or the distributions of means,
    standard deviations and sizes; None where chance explains it.

    `parts`: the fingerprints of each side's batches. The two-sample Kolmogorov-Smirnov test, with
    the bound of Wei and Dudley 2012, "Two-sample Dvoretzky-Kiefer-Wolfowitz inequalities", which
    holds for equal numbers of rows; Bonferroni's correction for the number of tests. Rows of a
    batch that are alike count as fewer (Kish's design effect).
    """
    known, now = map(_kinds, parts)
    if known != now:
        gone, new = (sorted(each)[:1] or ["nothing"] for each in (known - now, now - known))
        return f"{gone[0]} became {new[0]}"
    tests = []
    for where in before[0] if before else ():
        for at in range(min(len(rows[0]) for rows in (before[0][where], after[0][where]))):
            a, b = (_figures(side, where, at) for side in (before, after))
            tests.append((_bound(a, b), where, at, a, b))
    if not tests:
        return None
    least, where, at, a, b = min(tests, key=lambda test: test[0])
    if least >= FALSE_ALARMS / len(tests):
        return None
    middles = (np.mean(np.concatenate(each)) for each in (a, b))
    name = where + (FIGURES[at] if not where.startswith(SIZE) else f", dimension {at}")
    return f"the distribution of {name}: on average {next(middles):.4g} became {next(middles):.4g}"


def _kinds(batches: Sequence[Any]) -> set[str]:
    """Where parts are and what they are, without shapes."""
    return {f"{where} {what.partition(' (')[0]}" for parts in batches for where, what, _ in parts}


def _figures(side: Sequence[Rows], where: str, at: int) -> list[Any]:
    """One figure of each row of each batch; what is no number is less than all."""
    rows = [np.array([row[at] for row in batch.get(where, ())]) for batch in side]
    return [
        np.nan_to_num(each, nan=-FARTHEST, posinf=FARTHEST, neginf=-FARTHEST)
        for each in rows
        if len(each)
    ]


def _bound(one: list[Any], other: list[Any]) -> float:
    """An upper bound of the probability of a distance as large by chance."""
    rows = [np.concatenate(each) for each in (one, other)]
    ends = np.sort(np.concatenate(rows))
    shares = [np.searchsorted(np.sort(each), ends, "right") / len(each) for each in rows]
    distance = float(np.abs(shares[0] - shares[1]).max())
    count = min(len(rows[0]) / _alike(one), len(rows[1]) / _alike(other))
    return exp(1 - distance**2 * count)


def _alike(batches: list[Any]) -> float:
    """By how much the mean of a batch varies more than that of as many independent rows."""
    spread = float(np.var(np.concatenate(batches)))
    of_means = float(np.var([batch.mean() for batch in batches]))
    size = sum(map(len, batches)) / len(batches)
    return min(size, max(1.0, of_means * size / spread)) if spread else 1.0
