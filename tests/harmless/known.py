"""By what a watched run can be told from a bare one today, and in which finding that lies. To be emptied.

A difference that is listed here is an expected failure; once no program shows it any more, the list is what fails.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import NamedTuple


class Known(NamedTuple):
    finding: int
    programs: str  # a pattern of names
    difference: str  # an expression found in its line


KNOWN: list[Known] = []


def known(program: str, difference: str) -> Known | None:
    """The finding that explains this difference."""
    for one in KNOWN:
        if fnmatchcase(program, one.programs) and re.search(one.difference, difference):
            return one
    return None


# Of test_signals_at_moments.py: which moments show it is chance, that one of many does is not.
KNOWN_MOMENTS: dict[str, int] = {
    "first half second-watch": 3,
    "first half second-watch-pure": 3,
    "moments/alarm-stream": 3,
    "moments/alarm-timeout-error": 3,
    "moments/alarm-workers": 3,
    "moments/sigterm": 3,
    "at random": 3,
}
