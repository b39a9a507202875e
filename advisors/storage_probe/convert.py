"""Reads the sample once, and writes it into every layout.

The conversion time of a layout is what it would have taken alone.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean
from .decoders import Decoder
from .layout import Layout
from .scratch import RESERVE_BYTES, free_bytes
from .source import File

# Reading and decoding may take this part of the time, decoding alone until this part of it.
READING_SHARE, DECODING_SHARE = 0.5, 0.7


@dataclass
class Samples:
    """What was read, of the files at the beginning also decoded (as far as the bound on bytes
    allows), and the seconds that each took."""

    encoded: list[bytes] = field(default_factory=list)
    decoded: list[Any] = field(default_factory=list)
    read_s: list[float] = field(default_factory=list)
    decode_s: list[float] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    stopped: str | None = None


def read_samples(
    files: Sequence[File], decoder: Decoder | None, max_bytes: int, deadline: float
) -> Samples:
    """The samples of these files, until the deadline. What cannot be read or decoded is counted."""
    found, left, left_decoded = Samples(), max_bytes, max_bytes
    decode_until = deadline - (1 - DECODING_SHARE) * (deadline - time.monotonic())
    for path, _ in files:
        begun = time.monotonic()
        if begun > deadline:
            found.stopped = "the time for copying was over"
            break
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - a Path's open costs more
                data = file.read(left + 1)
        except OSError as error:
            found.skipped[f"cannot be read ({error.strerror or error})"] += 1
            continue
        if len(data) > left:
            found.skipped["has grown beyond the bound on bytes"] += 1
            continue
        read = time.monotonic()
        if decoder is not None and read < decode_until and left_decoded >= 0:
            try:
                sample = decoder.decode(data)
            except Exception as error:
                found.skipped[f"does not decode ({type(error).__name__})"] += 1
                continue
            found.decode_s.append(time.monotonic() - read)
            left_decoded -= getattr(sample, "nbytes", 0)
            if left_decoded >= 0:
                found.decoded.append(sample)
        left -= len(data)
        found.encoded.append(data)
        found.read_s.append(read - begun)
    return found


def convert(
    files: Sequence[File],
    layouts: Sequence[Layout],
    decoder: Decoder | None,
    max_bytes: int,
    deadline: float,
) -> Samples:
    """Write the samples into all layouts that have no `reason`, until time or space ends.

    A layout that cannot hold them gets its reason. The first layout is the files. Raises UsageError
    where there is no sample, or the disk is full.
    """
    now = time.monotonic()
    read_until = now + READING_SHARE * (deadline - now)
    found = read_samples(files, decoder, max_bytes, read_until)
    if not found.encoded:
        for why, number in found.skipped.most_common(1):
            raise UsageError(
                f"no file could be part of the sample: {clean(why, 200)}, for {number:,} of them"
            )
        raise UsageError("not one file could be copied in the time: raise --seconds")
    share_s = max(0.0, deadline - time.monotonic()) / len(layouts)
    for layout in layouts:
        encoded = layout.format.form == "encoded"
        samples: list[Any] = found.encoded if encoded else found.decoded
        if layout.reason is None:
            layout.reason = _why_not(samples, layout.folder.parent)
        if layout.reason is None:
            layout.fill(samples, share_s)
            spent_s = [found.read_s] if encoded else [found.read_s, found.decode_s]
            layout.convert_s += sum(sum(each[: layout.count]) for each in spent_s)
            layout.source_bytes = sum(map(len, found.encoded[: layout.count]))
            if layout.reason is None and layout.count < len(samples):
                found.stopped = "the time for copying was over"
    if layouts[0].reason is not None:
        raise UsageError(f"the files cannot be copied: {layouts[0].reason}")
    return found


def _why_not(samples: Sequence[Any], folder: Path) -> str | None:
    if not samples:
        return "no decoded sample was within the bounds: raise --bytes or --seconds"
    if not isinstance(samples[0], bytes | np.ndarray):
        return "samples do not decode to one array each"
    return "free space ran low" if free_bytes(folder) < RESERVE_BYTES // 2 else None
