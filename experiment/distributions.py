"""Whether random batches of two sides are of one distribution."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import Any

import numpy as np

Rows = dict[str, list[list[float]]]

FALSE_ALARMS = 0.01  # of all comparisons of a trial together
FIGURES = ("mean", "spread")  # of a row; what follows is the shape


def distributions_differ(
    before: Sequence[Rows], after: Sequence[Rows], parts: Sequence[Sequence[Any]]
) -> str | None:
    """What differs: where parts of batches are and of what dtype, or the distributions of means,
    standard deviations and sizes of rows; None where chance explains it.

    `parts`: the fingerprints of each side's batches. The two-sample Kolmogorov-Smirnov test, with
    the bound of Wei and Dudley 2012, "Two-sample Dvoretzky-Kiefer-Wolfowitz inequalities", which
    holds for equal numbers of rows; Bonferroni's correction for the number of tests.
    """
    known, now = map(_kinds, parts)
    if known != now:
        where = min(known ^ now)
        return f"{where}: {'only with' if where in now else 'no longer with'} the change"
    one, other = _joined(before), _joined(after)
    tests = [
        (where, at)
        for where in one
        if where in other
        for at in range(min(len(one[where][0]), len(other[where][0])))
    ]
    for where, at in tests:
        few = min(len(one[where]), len(other[where]))
        a, b = (_figures(each[where][:few], at) for each in (one, other))
        if _bound(a, b) < FALSE_ALARMS / len(tests):
            name = FIGURES[at] if at < len(FIGURES) else f"size {at - len(FIGURES)}"
            return (
                f"the distribution of {where or 'the batch'} ({name} of rows: "
                f"{np.mean(a):.4g} became {np.mean(b):.4g})"
            )
    return None


def _figures(rows: Sequence[Sequence[float]], at: int) -> Any:
    """One figure of each row; what is no number is less than all."""
    return np.nan_to_num(np.array([row[at] for row in rows]), nan=-np.inf)


def _kinds(batches: Sequence[Any]) -> set[str]:
    """Where parts are and what they are, without shapes."""
    return {f"{where} {what.partition(' (')[0]}" for parts in batches for where, what, _ in parts}


def _joined(batches: Sequence[Rows]) -> Rows:
    found: Rows = {}
    for batch in batches:
        for where, rows in batch.items():
            found.setdefault(where, []).extend(rows)
    return found


def _bound(one: Any, other: Any) -> float:
    """An upper bound of the probability of a distance as large, of samples as many, by chance."""
    ends = np.sort(np.concatenate([one, other]))
    shares = (np.searchsorted(np.sort(each), ends, "right") / len(each) for each in (one, other))
    distance = float(np.abs(np.subtract(*shares)).max())
    return exp(1 - distance**2 * len(one))
