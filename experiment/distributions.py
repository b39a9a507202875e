"""Whether the random batches of two sides have the same distribution."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import chain
from math import exp
from typing import Any

import numpy as np

from .fingerprint import SIZE, Rows

FALSE_ALARMS = 0.01  # of all comparisons of a trial together
FIGURES = (": means of rows", ": standard deviations of rows")
FARTHEST = 1e30  # stands for infinity; NaN counts as its negative


def distributions_differ(
    before: Sequence[Rows], after: Sequence[Rows], parts: Sequence[Sequence[Any]]
) -> str | None:
    """The difference in words, None if chance explains it. Compared are the parts of batches and
    their dtypes, and the distributions of means, standard deviations and sizes.

    `parts`: the fingerprints of each side's batches. The test is the two-sample Kolmogorov-Smirnov
    test with the bound of Wei and Dudley 2012, "Two-sample Dvoretzky-Kiefer-Wolfowitz
    inequalities". Its constant e covers any number of rows. Bonferroni's correction is for the
    number of tests. Rows of a batch that are alike count as fewer (Kish's design effect).
    """
    if not all(parts):
        return None
    one, other = map(_kinds, parts)
    gone, new = _only_in(one, other, len(parts[0])), _only_in(other, one, len(parts[1]))
    if gone or new:
        return f"{next(iter(gone), 'nothing')} became {next(iter(new), 'nothing')}"
    sides = [_figures(side) for side in (before, after)]
    tests = [
        (_bound(figures, sides[1][test]), *test, figures, sides[1][test])
        for test, figures in sides[0].items()
        if test in sides[1]
    ]
    if not tests:
        return None
    least, where, at, a, b = min(tests, key=lambda test: test[0])
    if least >= FALSE_ALARMS / len(tests):
        return None
    middles = (np.mean(np.concatenate(each)) for each in (a, b))
    name = where + (FIGURES[at] if not where.startswith(SIZE) else f", dimension {at}")
    return f"the distribution of {name}: on average {next(middles):.4g} became {next(middles):.4g}"


_SIZES = re.compile(r" of \d+$| \(.*")


def _kinds(batches: Sequence[Any]) -> Counter[str]:
    """Each kind of part without its size, and in how many batches it occurs."""
    kinds = ({f"{where} {_SIZES.sub('', what)}" for where, what, _ in parts} for parts in batches)
    return Counter(chain.from_iterable(kinds))


def _only_in(one: Counter[str], other: Counter[str], batches: int) -> list[str]:
    """Kinds that the other side lacks, and not by chance: lists may have any length."""
    return [
        kind
        for kind, count in sorted(one.items())
        if kind not in other and (1 - count / batches) ** batches < FALSE_ALARMS / len(one)
    ]


def _figures(side: Sequence[Rows]) -> dict[tuple[str, int], list[Any]]:
    """For each part and figure, one array per batch with the figure of each row."""
    found = defaultdict(list)
    for batch in side:
        for where, rows in batch.items():
            for at, values in enumerate(zip(*rows, strict=False)):
                plain = np.nan_to_num(values, nan=-FARTHEST, posinf=FARTHEST, neginf=-FARTHEST)
                found[where, at].append(plain)
    return found


def _bound(one: list[Any], other: list[Any]) -> float:
    """An upper bound of the probability that the distance is chance."""
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
