"""How wide ranges must be for four truths in five to lie inside: learnt from cases whose gain was
measured.

`benchmarks/known_residuals.py` writes widths.json: it takes generated cases, of seeds that judge
nothing, whose first advice was executed and timed, and asks by what factor the range predicted for
each would have to be stretched, on the side of the truth, to hold it. The quantile of those factors
that makes SHARE of ranges hold (counted as in split conformal prediction, so that few cases make it
larger) is what a range is stretched by: that of all cases, or of those on machines as crowded as
this one, and of the rule, as far as it has cases of its own (SHRINK).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..schema.report_model import Range

FILE = Path(__file__).with_name("widths.json")
SHARE = 0.8
# A group of so many cases counts as much as all others together.
SHRINK = 10
# From this part of its time waiting for a core on, a loop counts as crowded.
CROWDED_FROM = 0.1
NARROWEST, WIDEST = 0.5, 4.0


def stretched(found: Range, rule: str | None, crowded: bool) -> Range:
    """The range, as wide as the cases of this rule, on such machines, have shown to be needed. What
    the model is sure is a gain, or a loss, stays one: an end that comes nearer to no change goes
    half the way at most."""
    factor = _factor(_table(), rule, crowded)
    mid = max(1e-9, found.mid)
    down, up = math.log(mid / max(1e-9, found.low)), math.log(max(1e-9, found.high) / mid)
    low, high = mid * math.exp(-factor * max(0.0, down)), mid * math.exp(factor * max(0.0, up))
    if found.low > 1.0:
        low = max(low, math.sqrt(found.low))
    if found.high < 1.0:
        high = min(high, math.sqrt(found.high))
    return Range(low, found.mid, high)


def needed(low: float, mid: float, high: float, true: float) -> float:
    """The factor by which this range would have to be stretched to hold the truth, which is on one
    side of it."""
    side = math.log(mid / low) if true < mid else math.log(high / mid)
    return abs(math.log(true / mid)) / max(1e-3, side)


def learnt(residuals: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The table from residuals: each with its `rule`, whether it was `crowded`, and what stretching
    was `needed`."""
    every = list(residuals)
    whole = quantile([each["needed"] for each in every])
    found: dict[str, Any] = {"all": whole}
    for crowded, name in ((True, "crowded"), (False, "free")):
        found[name] = _shrunk(
            [each["needed"] for each in every if each["crowded"] == crowded], whole
        )
    found["rules"] = {
        # Relative to what is usual on such machines: the two multiply.
        rule: _shrunk(
            [
                each["needed"] / _of(found, each["crowded"])
                for each in every
                if each["rule"] == rule
            ],
            1.0,
        )
        for rule in sorted({each["rule"] for each in every})
    }
    return found


def quantile(values: list[float]) -> float:
    """The value below which SHARE of new ones will lie, of values drawn alike; 1 where there are
    none."""
    if not values:
        return 1.0
    place = math.ceil(SHARE * (len(values) + 1))
    return sorted(values)[min(place, len(values)) - 1]


def _shrunk(values: list[float], whole: float) -> float:
    """The quantile of a group, in factors, as far as its number speaks for it."""
    weight = len(values) / (len(values) + SHRINK)
    own = min(WIDEST, max(NARROWEST / 2, quantile(values)))
    return round(math.exp(weight * math.log(own) + (1 - weight) * math.log(max(1e-3, whole))), 3)


def _of(table: Mapping[str, Any], crowded: bool) -> float:
    return float(table["crowded" if crowded else "free"])


def _factor(table: Mapping[str, Any], rule: str | None, crowded: bool) -> float:
    found = _of(table, crowded) * float(table["rules"].get(rule, 1.0))
    return min(WIDEST, max(NARROWEST, found))


@cache
def _table() -> Mapping[str, Any]:
    table: Mapping[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))["table"]
    return table
