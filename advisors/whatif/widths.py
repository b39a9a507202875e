"""How wide ranges must be for four truths in five to lie inside.

`benchmarks/known_residuals.py` learns widths.json from generated cases whose first advice was
executed and timed. A range is stretched by the factor of machines as crowded as this one, times
that of the rule.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..schema.report_model import Range

FILE = Path(__file__).with_name("widths.json")
# A loop that waits for a core for this part of its time or more is crowded.
CROWDED_FROM = 0.1
NARROWEST, WIDEST = 0.5, 4.0


def stretched(found: Range, rule: str | None, crowded: bool) -> Range:
    """The range, as wide as cases of this rule on such machines needed. A certain gain or loss
    stays one: an end moves at most half the way towards no change."""
    factor = _factor(_table(), rule, crowded)
    mid = max(1e-9, found.mid)
    down, up = math.log(mid / max(1e-9, found.low)), math.log(max(1e-9, found.high) / mid)
    low, high = mid * math.exp(-factor * max(0.0, down)), mid * math.exp(factor * max(0.0, up))
    if found.low > 1.0:
        low = max(low, math.sqrt(found.low))
    if found.high < 1.0:
        high = min(high, math.sqrt(found.high))
    return Range(low, found.mid, high)


def _factor(table: Mapping[str, Any], rule: str | None, crowded: bool) -> float:
    found = float(table["crowded" if crowded else "free"]) * float(table["rules"].get(rule, 1.0))
    return min(WIDEST, max(NARROWEST, found))


@cache
def _table() -> Mapping[str, Any]:
    table: Mapping[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))["table"]
    return table
