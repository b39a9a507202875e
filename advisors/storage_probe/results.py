"""Turns times of passes into rates, gains and pay-offs for the whole data set."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from ..schema.gains import LEAST_GAIN
from ..schema.report_model import Range
from .layout import Layout
from .payoff import EpochTimes, pays_after
from .probe_model import LayoutTrial, Rate
from .source import Data
from .timing import Timed

Times = Sequence[float | None]  # seconds a sample by round


def trials(
    layouts: Sequence[Layout], timed: Timed, data: Data, memory_bytes: int | None
) -> tuple[LayoutTrial, ...]:
    """A result for each layout, in order. All are compared with the first, the files as they
    are."""
    return tuple(_trial(each, timed, data, memory_bytes) for each in layouts)


def clear_gain(factor: Range | None) -> bool:
    """Whether a factor is a gain in every round, and large enough to matter."""
    return factor is not None and factor.low > 1.0 and factor.mid > LEAST_GAIN


def middle(times: Times) -> float | None:
    """The median of what was measured."""
    known = [each for each in times if each is not None]
    return median(known) if known else None


def _trial(layout: Layout, timed: Timed, data: Data, memory_bytes: int | None) -> LayoutTrial:
    files = timed.layouts[0]
    stored = layout.reason is None and layout.count > 0
    scale = data.bytes / layout.source_bytes if stored and layout.source_bytes else None
    disk = layout.disk_bytes() if stored else None
    whole = disk * scale if disk is not None and scale is not None else None
    convert_s = layout.convert_s if stored and layout is not files else None
    whole_convert_s = convert_s * scale if convert_s is not None and scale is not None else None
    # The page cache holds the bytes of the files, not their allocated blocks.
    sizes = (data.bytes, data.bytes if layout is files else whole)
    fit = [
        size <= memory_bytes if size is not None and memory_bytes is not None else None
        for size in sizes
    ]
    reason, found = layout.reason, {}
    if reason is None and not timed.rounds:
        reason = "time was over before it could be read"
    elif reason is None:
        found = _figures(layout, timed, fit, data.count, whole_convert_s)
    return LayoutTrial(
        name=layout.format.name,
        label=layout.format.label,
        form=layout.format.form,
        order=layout.format.order,
        reason=reason,
        samples=layout.count if stored else 0,
        bytes=disk,
        whole_bytes=whole,
        convert_s=convert_s,
        whole_convert_s=whole_convert_s,
        fits_memory=fit[1],
        **found,
    )


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
    """Without a cold figure the first epoch is taken as warm."""
    first, later = middle(times["cold"]), middle(times["steady"]) or 0.0
    return EpochTimes(samples * (later if first is None else first), samples * later)


def _rate(times: Times) -> Rate | None:
    rates = [1 / each for each in times if each]
    return Rate(median(rates), min(rates), max(rates), len(rates)) if rates else None


def _factor(before: Times, after: Times) -> Range | None:
    """Ratios within the rounds: their median and extremes."""
    ratios = [b / a for b, a in zip(before, after, strict=True) if a and b]
    return Range(min(ratios), median(ratios), max(ratios)) if ratios else None
