"""A request for a burst, as it lies in the run directory: whoever wrote it, it is checked and
bounded."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass

MAX_BYTES = 4096
MAX_SECONDS = 30
_NONCE = re.compile(r"[0-9a-zA-Z_-]{8,64}")


@dataclass(frozen=True)
class Asked:
    """A request, checked. `seconds` is None for the usual length."""

    nonce: str
    native: bool = False
    seconds: int | None = None


def checked_request(data: bytes) -> Asked | None:
    """A request as far as it makes sense; None for anything else. Bounds: 1 to 30 seconds,
    whole."""
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if (
        not isinstance(told, dict)
        or not isinstance(told.get("nonce"), str)
        or not _NONCE.fullmatch(told["nonce"])
    ):
        return None
    seconds = told.get("seconds")
    whole = None
    if (
        isinstance(seconds, int | float)
        and not isinstance(seconds, bool)
        and not math.isnan(float_of(seconds))
    ):
        whole = math.ceil(max(1.0, min(float(MAX_SECONDS), float_of(seconds))))
    return Asked(told["nonce"], told.get("native") is True, whole)


def float_of(value: float) -> float:
    """The value; an integer beyond all floats is as good as infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
