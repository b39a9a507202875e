"""A kind of slow function, and one that was seen inside a stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ...case.case import Case
from ...schema.report_model import Effort

MOST_LEFT = 0.98  # of a function: what leaves more is no remedy
# Reading a stored result, µs a sample: a row of an array in memory, or of 60 kB in a mapped file.
STORED_US = (1.0, 10.0)

ONCE = "Its result is the same at every access: made once and stored as arrays, it is only read."
KEPT_CAVEAT = (
    "Random parts of making a sample must stay outside of what is stored. Beyond the page cache, "
    "reading the stored arrays may cost more than making them."
)


@dataclass(frozen=True)
class Kind:
    """`name` is what advice calls it, `left` the part of its time that remains with the
    alternative, at best and at worst.

    Patterns of where it is seen: `frames` match whole frames anywhere in a stack, `text` is found
    in a line of the user's from which compiled code runs. `needs`: each must be seen too; the
    files' `suffixes` may stand for the last. Frames below those of another kind count for that one,
    except below a `wrapper`, which counts only what no other kind explains. `instead_of`: less
    exact kinds that are left out where it is seen. `waits`: it does no work, and no code helps.
    `unless`: it is well done where the line matches this.

    What goes away with it, at best: frames that match `around`; with `stored` the rest of the own
    function that calls it. With `stored`, reading the stored result costs something; with `once`,
    the data are converted.

    `title`, `why` and `caveat` say what to do, and `code` writes it for a case.
    """

    key: str
    name: str
    left: tuple[float, float]
    frames: str = ""
    text: str = ""
    around: str = ""
    unless: str = ""
    needs: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    stored: bool = False
    wrapper: bool = False
    waits: bool = False
    instead_of: tuple[str, ...] = ()
    title: str = ""
    why: str = ONCE
    caveat: str = KEPT_CAVEAT
    code: Callable[[Case, Hot], str] = field(default=lambda case, hot: "", repr=False)
    once: bool = False

    @property
    def effort(self) -> Effort:
        return "a conversion" if self.once else "a few lines"


@dataclass(frozen=True)
class Hot:
    """A known function. `share` is its part of the stage, [low, high] the range with what goes away
    with it: `low` of itself alone, `high` of all that may. `place` is the own line that calls it,
    `text` its source."""

    family: Kind
    share: float
    low: float
    high: float
    place: str | None = None
    text: str | None = None

    @property
    def called_from(self) -> str:
        """', called from train.py:41', where that is known."""
        return f", called from {self.place}" if self.place else ""

    def left(self, sample_us: float) -> tuple[float, float]:
        """What remains of fetch with the alternative, at best and at worst."""
        part_us, kind = max(1e-3, self.share * sample_us), self.family
        best, worst = kind.left
        if kind.stored:
            best, worst = max(best, STORED_US[0] / part_us), max(worst, STORED_US[1] / part_us)
        worst = min(MOST_LEFT, worst)
        return 1 - self.high * (1 - min(best, worst)), 1 - self.low * (1 - worst)

    @property
    def weight(self) -> float:
        """How much of the stage goes away, about."""
        return self.share * (1 - sum(self.family.left) / 2)
