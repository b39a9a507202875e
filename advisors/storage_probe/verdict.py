"""The result in two or three sentences: what reading is worth, and the best layout of each form."""

from collections.abc import Iterator, Sequence

from ..schema.figures import percent, size, times
from .probe_model import Form, LayoutTrial, clear_gain


def sentences(
    layouts: Sequence[LayoutTrial],
    warm_share: float | None,
    cold_share: float | None,
    memory_bytes: int,
) -> Iterator[str]:
    """What a person needs to decide. `*_share` is reading's part of the time a sample takes."""
    cold = layouts[0].fits_memory is False and cold_share is not None
    share = cold_share if cold else warm_share
    if share is None:
        yield "Files of this kind are not decoded here: the figures are for reading alone."
        yield _best(layouts, "encoded")
        return
    where = "from the storage" if cold else "from the page cache"
    first = ""
    if not cold and cold_share is not None:
        first = f" ({percent(cold_share)} in a first epoch, from the storage)"
    most = times(1 / (1 - share)) if share < 0.99 else "reading does"
    yield (
        f"Reading {where} is {percent(share)} of the time per sample{first}, decoding "
        f"{percent(1 - share)}: no layout that keeps samples encoded gains more than {most}."
    )
    yield _best(layouts, "encoded")
    yield _best(layouts, "decoded", memory_bytes)


def _best(layouts: Sequence[LayoutTrial], form: Form, memory_bytes: int = 0) -> str:
    """The layout of this form that gains most, and its size."""
    what = "of the same bytes" if form == "encoded" else "of decoded samples"
    known = [(each, each.gain) for each in layouts[1:] if each.form == form and each.gain]
    if not known:
        return f"No layout {what} could be tried: see the reasons below."
    best, gain = max(known, key=lambda pair: pair[1].mid)
    name = f"{best.label}, {times(gain.mid)} ({times(gain.low)} to {times(gain.high)})"
    if not clear_gain(gain):
        return f"No layout {what} is clearly faster than the files: the closest is {name}."
    text = f"The best layout {what} is {name}, {size(best.whole_bytes or 0.0)} in all"
    if form == "decoded" and not best.fits_memory:
        text += f". It does not fit in memory ({size(memory_bytes)} at most)"
    return f"{text}."
