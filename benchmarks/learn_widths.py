"""How wide ranges must be for four truths in five to lie inside, learnt from residuals.

A residual says by what factor a predicted range must be stretched, on the side of the truth, to
hold it. The quantile of those factors that makes SHARE of ranges hold is counted as in split
conformal prediction, which makes it larger where there are few cases.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from loaderscope.advisors.whatif.widths import NARROWEST, WIDEST

SHARE = 0.8
# A group of so many cases counts as much as all others together.
SHRINK = 10


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
                each["needed"] / found["crowded" if each["crowded"] else "free"]
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
