"""From passes to rates, factors and pay-offs: what each layout would mean for the whole data
set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from ..schema.gains import LEAST_GAIN
from ..schema.report_model import Range
from .layout import Layout
from .payoff import epoch_times, pays_after
from .probe_model import LayoutTrial, Rate
from .source import Data
from .timing import Lane, Timed

Times = Sequence[float | None]


def trials(
    layouts: Sequence[Layout], timed: Timed, data: Data, memory_bytes: int | None
) -> tuple[LayoutTrial, ...]:
    """One result a layout, in order; the first is the files as they are, to which all are
    compared."""
    lanes = {lane.layout.name: lane for lane in timed.lanes}
    return tuple(_trial(each, lanes.get(each.name), timed, data, memory_bytes) for each in layouts)


def decode_times(timed: Timed) -> list[float | None]:
    """Seconds a sample of decoding by round; zeros where nothing decodes."""
    return list(timed.decode_s) or [0.0] * timed.rounds


def with_decoding(lane: Lane, times: Times, timed: Timed) -> list[float | None]:
    """Seconds a sample by round: a decoded layout has nothing to add."""
    if lane.layout.form == "decoded":
        return list(times)
    return [
        None if t is None or d is None else t + d
        for t, d in zip(times, decode_times(timed), strict=True)
    ]


def clear_gain(factor: Range | None) -> bool:
    """Whether a factor is a gain in every round, and large enough to matter."""
    return factor is not None and factor.low > 1.0 and factor.mid > LEAST_GAIN


def middle(times: Times) -> float | None:
    """The median of what was measured."""
    known = [each for each in times if each is not None]
    return median(known) if known else None


def _trial(
    layout: Layout, lane: Lane | None, timed: Timed, data: Data, memory_bytes: int | None
) -> LayoutTrial:
    scale = data.bytes / layout.source_bytes if layout.source_bytes else None
    stored = layout.reason is None and layout.count > 0
    disk = layout.disk_bytes() if stored else None
    whole = disk * scale if disk is not None and scale is not None else None
    is_files = layout is timed.lanes[0].layout
    convert_s = None if is_files or not stored else layout.convert_s
    base = LayoutTrial(
        name=layout.name,
        label=layout.label,
        form=layout.form,
        order=layout.order,
        reason=layout.reason,
        samples=layout.count if stored else 0,
        bytes=disk,
        whole_bytes=whole,
        convert_s=convert_s,
        whole_convert_s=convert_s * scale if convert_s is not None and scale is not None else None,
        fits_memory=whole <= memory_bytes
        if whole is not None and memory_bytes is not None
        else None,
    )
    if is_files:
        base = replace(base, fits_memory=files_fit(data, memory_bytes))
    if lane is None or not timed.rounds:
        return (
            base if base.reason else replace(base, reason="time was over before it could be read")
        )
    files = timed.lanes[0]
    found: dict[str, Any] = {}
    for state, times, others in (
        ("cold", lane.cold_s, files.cold_s),
        ("warm", lane.warm_s, files.warm_s),
    ):
        total, other_total = with_decoding(lane, times, timed), with_decoding(files, others, timed)
        found[f"read_{state}"], found[f"total_{state}"] = _rate(times), _rate(total)
        if not is_files:
            found[f"read_{state}_factor"] = _factor(others, times)
            found[f"total_{state}_factor"] = _factor(other_total, total)
    if not is_files:
        before, after = steady(files, lane, data, memory_bytes, base.fits_memory)
        found["read_steady_factor"] = _factor(before, after)
        found["total_steady_factor"] = _factor(
            with_decoding(files, before, timed), with_decoding(lane, after, timed)
        )
        found["pays_after_reading"] = _pays(base, lane, timed, data, memory_bytes, decoding=False)
        found["pays_after_total"] = _pays(base, lane, timed, data, memory_bytes, decoding=True)
    return replace(base, **found)


def steady(
    files: Lane, lane: Lane, data: Data, memory_bytes: int | None, fits: bool | None
) -> tuple[Times, Times]:
    """Reading in any epoch but the first, of the files and of another layout that fits in memory or
    not."""
    before = files.cold_s if files_fit(data, memory_bytes) is False else files.warm_s
    after = lane.cold_s if fits is False else lane.warm_s
    if middle(before) is None or middle(after) is None:
        return files.warm_s, lane.warm_s
    return before, after


def files_fit(data: Data, memory_bytes: int | None) -> bool | None:
    """Whether the files as they are stay in memory. The page cache holds what is read, whatever is
    allocated."""
    return data.bytes <= memory_bytes if memory_bytes is not None else None


def _rate(times: Times) -> Rate | None:
    rates = [1 / each for each in times if each]
    return Rate(median(rates), min(rates), max(rates), len(rates)) if rates else None


def _factor(before: Times, after: Times) -> Range | None:
    """Ratios within the rounds: their median and extremes."""
    ratios = [b / a for b, a in zip(before, after, strict=True) if a and b]
    return Range(min(ratios), median(ratios), max(ratios)) if ratios else None


def _pays(
    base: LayoutTrial,
    lane: Lane,
    timed: Timed,
    data: Data,
    memory_bytes: int | None,
    *,
    decoding: bool,
) -> int | None:
    """Epochs, with the files' own size deciding whether they stay in memory. None where no steady
    gain is clear."""
    files = timed.lanes[0]
    pick = with_decoding if decoding else (lambda lane, times, timed: list(times))
    before = [middle(pick(files, times, timed)) for times in (files.cold_s, files.warm_s)]
    after = [middle(pick(lane, times, timed)) for times in (lane.cold_s, lane.warm_s)]
    if base.whole_convert_s is None or before[1] is None or after[1] is None:
        return None
    b, a = steady(files, lane, data, memory_bytes, base.fits_memory)
    if not clear_gain(_factor(pick(files, b, timed), pick(lane, a, timed))):
        return None  # a faster first epoch that the later ones lose again is no reason to convert
    return pays_after(
        base.whole_convert_s,
        epoch_times(data.count, before[0], before[1], files_fit(data, memory_bytes)),
        epoch_times(data.count, after[0], after[1], base.fits_memory),
    )
