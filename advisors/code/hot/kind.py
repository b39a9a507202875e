"""A kind of slow function, and one that was seen inside a stage."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from ...case.case import Case
from ...schema.report_model import Effort

# What reading a stored result costs a sample, µs: a row of an array in memory, of 60 kB in a mapped
# file.
STORED_US = (1.0, 10.0)
MOST_LEFT = 0.98

ONCE = (
    "It gives the same for each sample at every access: made once and stored as arrays, it is "
    "only read."
)
KEPT_CAVEAT = (
    "Random parts of making a sample must stay outside of what is stored. Beyond the page cache, "
    "reading the stored arrays may cost more than making them."
)

Pattern = re.Pattern[str]


@dataclass(frozen=True)
class Kind:
    """`name` is how advice calls it. `frames` and `text` say where it is seen: frames anywhere in a
    stack, text in an own line from which compiled code runs.

    `around` are frames that go with it, at best: with `whole` or `stored`, so does the rest of the
    own function that calls it, and with `stored` reading what was stored costs something. `needs`:
    each must be seen too, one of them may be known by the files' suffix instead. Frames below those
    of another family are that one's, but for a `wrapper`, which only counts what no other family
    explains. `names`: what a source without line numbers must use. With `tensor`, the data set must
    hold one. With `waits`, it is no work but waiting. `instead_of`: less exact families that are
    not named where it is seen. `left_us`: what is left, µs a sample, where that is known.

    `called`: what the source calls where it is used, one of these, each with all of its names. Only
    what takes most of a sample wherever it is called, for each sample: whole files are read, parsed
    or decoded, or folders listed.

    `title`, `why` and `caveat` say what to do, `code` writes it for a case; of waiting, nothing.
    With `once`, what it makes is stored too, and storing whole samples, where they stay the same,
    does as well.
    """

    key: str
    name: str
    left: tuple[float, float]
    left_us: tuple[float, float] | None = field(default=None, kw_only=True)
    frames: Pattern | None = None
    text: Pattern | None = None
    around: Pattern | None = None
    needs: tuple[Pattern, ...] = ()
    suffixes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    stored: bool = False
    whole: bool = False
    wrapper: bool = False
    tensor: bool = False
    waits: bool = False
    instead_of: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    title: str = ""
    why: str = ONCE
    caveat: str = KEPT_CAVEAT
    code: Callable[[Case, Hot], str] = field(default=lambda case, hot: "", repr=False)
    once: bool = False

    @property
    def is_stored(self) -> bool:
        return self.stored or self.once

    @property
    def effort(self) -> Effort:
        return "a conversion" if self.once or self.title.startswith("Store ") else "a few lines"


@dataclass(frozen=True)
class Hot:
    """A known function. `share` is its part of the stage, [low, high] the range that holds what
    goes with it: `low` of itself alone, `high` of all that may go with it. `place` is the own line
    that calls it."""

    family: Kind
    share: float
    low: float
    high: float
    place: str | None
    text: str | None
    function: str | None

    def left(self, sample_us: float) -> tuple[float, float]:
        """What remains of fetch with the alternative, at best and at worst."""
        best, worst = self.family.left
        if self.family.left_us is not None:
            best, worst = (each / max(1e-3, self.share * sample_us) for each in self.family.left_us)
        elif self.family.is_stored:
            part_us = max(1e-3, self.share * sample_us)
            best, worst = max(best, STORED_US[0] / part_us), max(worst, STORED_US[1] / part_us)
        worst = min(MOST_LEFT, worst)
        best = min(best, worst)
        return 1 - self.high * (1 - best), 1 - self.low * (1 - worst)

    @property
    def weight(self) -> float:
        """How much of the stage goes, about."""
        return self.share * (1 - sum(self.family.left) / 2)
