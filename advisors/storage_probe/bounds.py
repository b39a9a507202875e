"""How much of a data set a probe may copy, and how long it may take."""

from __future__ import annotations

import re
from typing import NamedTuple

from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean


class Bounds(NamedTuple):
    """The most bytes of each layout, files, and seconds in all."""

    max_bytes: int
    max_files: int
    max_seconds: float

    def check(self) -> None:
        """Raises UsageError."""
        if not (self.max_bytes > 0 < self.max_files and 0 < self.max_seconds < float("inf")):
            raise UsageError("the probe needs a number of bytes, files and seconds above 0")


def read_size(text: str) -> int:
    """Bytes from "64MB", "1.5 GB", "2GiB" or "4096". Raises UsageError."""
    match = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([kKMGT]?)(i?)[bB]?\s*", text, re.ASCII)
    if match is None:
        raise UsageError(f"{clean(text, 40)!r} is not a size: write it as 64MB or 1.5GB")
    unit: int = (1024 if match[3] else 1000) ** " KMGT".index(match[2].upper() or " ")
    return round(float(match[1]) * unit)
