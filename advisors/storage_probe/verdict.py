"""The result in two or three plain sentences: what reading is worth, the best layout, and the best
decoded one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..schema.figures import count, percent, size, times, us
from ..schema.report_model import Range
from .decoders import Decoder
from .probe_model import LayoutTrial
from .results import clear_gain
from .source import Data


def sentences(
    layouts: Sequence[LayoutTrial],
    data: Data,
    decoder: Decoder | None,
    warm_share: float | None,
    cold_share: float | None,
    memory_bytes: int | None,
) -> Iterator[str]:
    """What a person needs to decide. Nothing where no layout has figures."""
    files = layouts[0]
    if files.read_warm is None:
        yield "Nothing could be timed: give it more time with --seconds."
        return
    cold = files.fits_memory is False and cold_share is not None
    share = cold_share if cold else warm_share
    if decoder is not None and share is not None:
        yield _bound(decoder, share, None if cold else cold_share, cold)
    else:
        yield "Files of this kind are not decoded here: what follows is reading alone."
    yield _best_encoded(
        [each for each in layouts[1:] if each.form == "encoded" and each.reason is None]
    )
    decoded = [each for each in layouts if each.form == "decoded"]
    if decoded and decoder is not None:
        yield _best_decoded(decoded, files, memory_bytes)


def _bound(decoder: Decoder, share: float, cold_share: float | None, cold: bool) -> str:
    where = "from the storage" if cold else "from the page cache"
    beside = (
        f" ({percent(cold_share)} in a first epoch, from the storage)"
        if cold_share is not None
        else ""
    )
    most = (
        f"gains more than {times(1 / (1 - share))}"
        if share < 0.99
        else "gains more than reading does"
    )
    return (
        f"Reading {where} is {percent(share)} of the time a sample takes{beside}, decoding "
        f"{percent(1 - share)}: no layout that keeps {decoder.things} encoded {most}."
    )


def _best_encoded(tried: Sequence[LayoutTrial]) -> str:
    best = _best(tried)
    factor = best.total_steady_factor if best is not None else None
    if not tried:
        return "No other layout of the same bytes could be tried: see why below."
    if best is None or factor is None:
        return "No layout of the same bytes has figures."
    if not clear_gain(factor):
        near = f"{best.label} comes nearest, {_range(factor)}"
        return f"No layout of the same bytes is clearly faster than the files: {near}."
    order = ", read in sequence," if best.order == "in sequence" else ""
    return (
        f"Of the layouts of the same bytes {best.label}{order} is best: {_range(factor)}; "
        f"{_cost(best)}."
    )


def _best_decoded(
    decoded: Sequence[LayoutTrial], files: LayoutTrial, memory_bytes: int | None
) -> str:
    best = _best([each for each in decoded if each.reason is None])
    factor = best.total_steady_factor if best is not None else None
    if best is None or factor is None or best.whole_bytes is None:
        return f"Decoded samples were not tried: {decoded[0].reason or 'they could not be timed'}."
    larger = best.whole_bytes / files.whole_bytes if files.whole_bytes else None
    beside = (
        ""
        if larger is None
        else ", about the same"
        if 0.9 < larger < 1.1
        else f", {larger:.2g} times the space"
    )
    told = (
        f"Decoded beforehand ({best.label}), samples come {_range(factor)} as fast, but the whole "
        f"data set is then {size(best.whole_bytes)}{beside}; {_cost(best)}."
    )
    if best.fits_memory is False and memory_bytes is not None:
        now = "" if files.fits_memory else ", nor do the files"
        return (
            f"{told} It does not fit in memory ({size(memory_bytes)} at most{now}), so each epoch "
            "reads it anew."
        )
    return told


def _best(tried: Sequence[LayoutTrial]) -> LayoutTrial | None:
    known = [
        (factor.mid, each) for each in tried if (factor := each.total_steady_factor) is not None
    ]
    return max(known, key=lambda each: each[0])[1] if known else None


def _range(factor: Range) -> str:
    return f"{times(factor.mid)} ({times(factor.low)} to {times(factor.high)})"


def _cost(trial: LayoutTrial) -> str:
    """What converting the whole data set costs, and when it pays."""
    if trial.whole_convert_s is None:
        return "what converting costs is not known"
    spent = f"converting takes about {us(trial.whole_convert_s * 1e6)}"
    epochs = trial.pays_after_total
    if epochs is None:
        return f"{spent} and does not pay"
    return (
        f"{spent} and pays after {'the first epoch' if epochs == 1 else f'{count(epochs)} epochs'}"
    )
