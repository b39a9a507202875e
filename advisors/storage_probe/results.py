"""Turns times of passes into rates, gains and pay-offs for the whole data set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from ..schema.gains import LEAST_GAIN
from ..schema.report_model import Range
from .layout import Layout
from .probe_model import LayoutTrial, Rate
from .source import Data
from .timing import Timed

Times = Sequence[float | None]  # seconds a sample by round
EpochTimes = tuple[float, float]  # seconds of the first epoch, and of each later one

# A training of more epochs than this does not exist: "never".
MAX_EPOCHS = 10_000


def clear_gain(factor: Range | None) -> bool:
    """Whether a factor is a gain in every round, and large enough to matter."""
    return factor is not None and factor.low > 1.0 and factor.mid > LEAST_GAIN


def middle(times: Times) -> float | None:
    """The median of what was measured."""
    known = [each for each in times if each is not None]
    return median(known) if known else None


def trial_of(layout: Layout, timed: Timed, data: Data, memory_bytes: int | None) -> LayoutTrial:
    """The result of a layout, compared with the first, the files as they are."""
    kind, whole, convert_s = layout.format, float(data.bytes), None
    trial = LayoutTrial(kind.name, kind.label, kind.form, kind.order, layout.reason)
    if layout.reason is not None:
        return trial
    scale, disk = data.bytes / max(1, layout.source_bytes), layout.disk_bytes()
    # The page cache holds the bytes of the files, not their allocated blocks.
    if layout is not timed.layouts[0]:
        whole, convert_s = disk * scale, layout.convert_s
    fit = [None if memory_bytes is None else size <= memory_bytes for size in (data.bytes, whole)]
    trial = replace(
        trial,
        samples=layout.count,
        bytes=disk,
        whole_bytes=disk * scale,
        convert_s=convert_s,
        whole_convert_s=convert_s * scale if convert_s is not None else None,
        fits_memory=fit[1],
    )
    if not timed.rounds:
        return replace(trial, reason="time was over before it could be read")
    return replace(trial, **_figures(layout, timed, fit, data.count, trial.whole_convert_s))


def _figures(
    layout: Layout,
    timed: Timed,
    fit: Sequence[bool | None],
    samples: int,
    whole_convert_s: float | None,
) -> dict[str, Any]:
    """Rates, and for all layouts but the files the factors and pay-offs."""
    files = timed.layouts[0]
    found: dict[str, Any] = {}
    for part, pays in (("read", "pays_after_reading"), ("total", "pays_after_total")):
        decode_s = timed.decode_s if part == "total" else []
        before, after = _times(files, decode_s), _times(layout, decode_s)
        for state in before:
            found[f"{part}_{state}"] = _rate(after[state])
        if layout is files:
            continue
        before["steady"], after["steady"] = (
            each["cold" if fits is False else "warm"]
            for each, fits in zip((before, after), fit, strict=True)
        )
        if middle(before["steady"]) is None or middle(after["steady"]) is None:
            before["steady"], after["steady"] = before["warm"], after["warm"]
        for state in before:
            found[f"{part}_{state}_factor"] = _factor(before[state], after[state])
        # A faster first epoch that the later ones lose again is no reason to convert.
        if whole_convert_s is not None and clear_gain(found[f"{part}_steady_factor"]):
            epochs = (_epoch_times(each, samples) for each in (before, after))
            found[pays] = pays_after(whole_convert_s, *epochs)
    return found


def _times(layout: Layout, decode_s: Sequence[float]) -> dict[str, Times]:
    """Cold and warm times, with decoding if it is given and the layout is not decoded."""
    more = decode_s if layout.format.form == "encoded" and decode_s else [0.0] * len(layout.warm_s)
    return {
        state: [t + d if t is not None else None for t, d in zip(times, more, strict=True)]
        for state, times in (("cold", layout.cold_s), ("warm", layout.warm_s))
    }


def _epoch_times(times: dict[str, Times], samples: int) -> EpochTimes:
    """The first epoch finds nothing in the page cache; without a cold figure it is taken as
    warm."""
    first, later = middle(times["cold"]), middle(times["steady"]) or 0.0
    return samples * (later if first is None else first), samples * later


def pays_after(convert_s: float, before: EpochTimes, after: EpochTimes) -> int | None:
    """The first number of epochs after which `convert_s` and the epochs after it took less than
    those before.

    None for never, or beyond MAX_EPOCHS. The first epoch may save more or less than the later ones.
    """
    (first_s, later_s), (new_first_s, new_later_s) = before, after
    more, saved = convert_s + new_first_s - first_s, later_s - new_later_s
    if more < 0:
        return 1
    # convert + first' + (n-1) later' < first + (n-1) later, solved for n
    epochs = 2 + math.floor(more / saved) if saved > 0 else math.inf
    return int(epochs) if epochs <= MAX_EPOCHS else None


def _rate(times: Times) -> Rate | None:
    rates = [1 / each for each in times if each]
    return Rate(median(rates), min(rates), max(rates), len(rates)) if rates else None


def _factor(before: Times, after: Times) -> Range | None:
    """Ratios within the rounds: their median and extremes."""
    ratios = [b / a for b, a in zip(before, after, strict=True) if a and b]
    return Range(min(ratios), median(ratios), max(ratios)) if ratios else None
