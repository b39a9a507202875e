"""The result in two or three sentences: what reading is worth, and the best layout of each form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..schema.figures import count, percent, size, times, us
from ..schema.report_model import Range
from .decoders import Decoder
from .probe_model import LayoutTrial
from .results import clear_gain


def sentences(
    layouts: Sequence[LayoutTrial],
    decoder: Decoder | None,
    warm_share: float | None,
    cold_share: float | None,
    memory_bytes: int | None,
) -> Iterator[str]:
    """What a person needs to decide. `*_share` is reading's part of the time a sample takes."""
    files = layouts[0]
    if files.read_warm is None:
        yield "Nothing could be timed: raise --seconds."
        return
    cold = files.fits_memory is False and cold_share is not None
    share = cold_share if cold else warm_share
    if decoder is not None and share is not None:
        yield _bound(decoder, share, None if cold else cold_share, cold)
    else:
        yield "Files of this kind are not decoded here: the figures are for reading alone."
    yield _best_encoded(
        [each for each in layouts[1:] if each.form == "encoded" and each.reason is None]
    )
    decoded = [each for each in layouts if each.form == "decoded"]
    if decoded and decoder is not None:
        yield _best_decoded(decoded, files, memory_bytes)


def _bound(decoder: Decoder, share: float, cold_share: float | None, cold: bool) -> str:
    where = "from the storage" if cold else "from the page cache"
    first = ""
    if cold_share is not None:
        first = f" ({percent(cold_share)} in a first epoch, from the storage)"
    most = times(1 / (1 - share)) if share < 0.99 else "reading does"
    return (
        f"Reading {where} is {percent(share)} of the time per sample{first}, decoding "
        f"{percent(1 - share)}: no layout that keeps {decoder.things} encoded gains more than "
        f"{most}."
    )


def _best_encoded(tried: Sequence[LayoutTrial]) -> str:
    if not tried:
        return "No other layout of the same bytes could be tried: see the reasons below."
    best, factor = _best(tried)
    if best is None or factor is None:
        return "No layout of the same bytes has figures."
    if not clear_gain(factor):
        return (
            "No layout of the same bytes is clearly faster than the files: the closest is "
            f"{best.label}, {_range(factor)}."
        )
    order = ", read in sequence," if best.order == "in sequence" else ""
    return (
        f"The best layout of the same bytes is {best.label}{order}: {_range(factor)}; "
        f"{_cost(best)}."
    )


def _best_decoded(
    decoded: Sequence[LayoutTrial], files: LayoutTrial, memory_bytes: int | None
) -> str:
    best, factor = _best([each for each in decoded if each.reason is None])
    if best is None or factor is None or best.whole_bytes is None:
        return f"Decoded samples were not tried: {decoded[0].reason or 'they could not be timed'}."
    space = ""
    if files.whole_bytes:
        larger = best.whole_bytes / files.whole_bytes
        same = 0.9 < larger < 1.1
        space = ", about the same space" if same else f", {larger:.2g} times the space"
    text = (
        f"Decoded in advance ({best.label}), samples load {_range(factor)} as fast, and the whole "
        f"data set takes {size(best.whole_bytes)}{space}; {_cost(best)}."
    )
    if best.fits_memory is False and memory_bytes is not None:
        nor = "" if files.fits_memory else ", nor do the files"
        text += (
            f" It does not fit in memory ({size(memory_bytes)} at most){nor}, so each epoch "
            "reads it from the storage."
        )
    return text


def _best(tried: Sequence[LayoutTrial]) -> tuple[LayoutTrial | None, Range | None]:
    known = [(each, each.total_steady_factor) for each in tried]
    return max(known, key=lambda pair: pair[1].mid if pair[1] else -1.0, default=(None, None))


def _range(factor: Range) -> str:
    return f"{times(factor.mid)} ({times(factor.low)} to {times(factor.high)})"


def _cost(trial: LayoutTrial) -> str:
    """What converting the whole data set costs, and when it pays."""
    if trial.whole_convert_s is None:
        return "the cost of converting is not known"
    spent = f"converting takes about {us(trial.whole_convert_s * 1e6)}"
    epochs = trial.pays_after_total
    if epochs is None:
        return f"{spent} and does not pay"
    return (
        f"{spent} and pays after {'the first epoch' if epochs == 1 else f'{count(epochs)} epochs'}"
    )
