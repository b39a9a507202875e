"""Small drawings in text: courses and columns, blocks of a document, and words in place of what a
snapshot lacks. Every mark is a shape, so that none needs its colour."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from rich.console import Group
from rich.segment import Segment
from rich.style import Style
from textual.content import Content

from ...profiler.base.arrays import Floats
from ...profiler.base.metadata import clean
from ...reports.document.blocks import Block, Part
from ...reports.text.draw import console, drawn_parts
from ...reports.words.curves import resampled
from ..snapshot import Snapshot

# Styles by meaning; the theme says which colours these are.
GOOD, FAIR, BAD = "$text-success", "$text-warning", "$text-error"
MARK = "$text-primary"
SECOND = "$text-accent"
DIM = "dim"

VERDICTS = {"input-bound": BAD, "balanced": FAIR, "compute-bound": GOOD, "too-short": MARK}
STATES = {
    "live": GOOD,
    "finished": MARK,
    "interrupted": FAIR,
    "failed": BAD,
    "crashed": BAD,
    "removed": BAD,
    "unreadable": BAD,
    "unknown": FAIR,
}

HEAD = 22  # columns beside a graph
EIGHTHS_UP = " ▁▂▃▄▅▆▇█"

Values = Sequence[float | None] | Floats
Piece = tuple[str, str]

Drawing = Callable[..., Content]
_COLORS = {"green": GOOD, "yellow": FAIR, "red": BAD, "cyan": MARK}
LEAST_WIDTH = 20


def lines(parts: Sequence[Content]) -> Content:
    """Contents below each other."""
    return Content("\n").join(parts)


def text(value: object, limit: int = 400) -> str:
    """A text from the run, fit to be shown."""
    return clean(value, max(1, limit))


def line(*parts: str | Piece) -> Content:
    """One line of styled pieces; nothing in them is markup."""
    return Content.assemble(*parts)


def dim(said: str) -> Content:
    """One line beside what matters: a note, or why there is nothing."""
    return Content.styled(said, DIM)


def course(values: Values, width: int, top: float | None = None) -> str:
    """A course over time as columns of eighths; a gap where nothing was measured."""
    _, points = resampled(values, width)
    most = top or np.nan_to_num(points).max(initial=0.0) or 1.0
    eighths = np.round((points / most).clip(0, 1) * 8).clip(1)  # a measured zero shows as a floor
    return "".join(EIGHTHS_UP[n] for n in np.nan_to_num(eighths).astype(int)).ljust(width)


def graph(
    label: str, now: str, history: Values, style: str, width: int, top: float | None = None
) -> Content:
    """A course over time beside its name and its value now."""
    drawn = course(history, width - HEAD, top)
    return line(f"{label:<12}", (f"{now:>8}  ", "bold"), (drawn, style))


def heat(share: float) -> str:
    """The style of a share of something limited."""
    return BAD if share >= 0.9 else FAIR if share >= 0.75 else GOOD


def fitted(value: str, width: int) -> str:
    """Exactly `width` columns of ASCII-width text: cut with an ellipsis, or padded."""
    if len(value) > width:
        return value[: width - 1] + "…" if width > 0 else ""
    return value.ljust(width)


def needs_loader(draw: Drawing) -> Drawing:
    """Makes a drawing of a snapshot out of one of its LoaderView."""

    def drawn(s: Snapshot, *room: int) -> Content:
        return dim("no batches yet") if not s.loader else draw(s.loader, *room)

    return drawn


def needs_advice(draw: Drawing) -> Drawing:
    """Makes a drawing of a snapshot out of one of its last report with advice."""

    def drawn(s: Snapshot, *room: int) -> Content:
        if s.advice.report:
            return draw(s.advice.report, *room)
        return line((text(s.advice.problem), BAD)) if s.advice.problem else dim("no advice yet")

    return drawn


def blocks(found: Iterable[Block], width: int) -> Content:
    """The blocks below each other, without empty lines between them."""
    return parts([Part(list(found))], width, gaps=False)


def parts(found: Iterable[Part], width: int, gaps: bool = True) -> Content:
    """The parts below each other, each below its title."""
    width = max(LEAST_WIDTH, width)
    segments = console(width).render(Group(*drawn_parts(found, width, gaps)))
    return lines(
        [
            Content.assemble(*((part.text, _style(part.style)) for part in line)).rstrip()
            for line in Segment.split_lines(segments)
        ]
    ).rstrip()


def _style(style: Style | None) -> str:
    """The same in the theme's words."""
    if style is None:
        return ""
    flags = (name for name in ("bold", "dim", "italic", "underline") if getattr(style, name))
    return " ".join([*flags, _COLORS.get(style.color.name, "") if style.color else ""]).strip()
