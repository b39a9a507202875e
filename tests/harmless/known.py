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


KNOWN: list[Known] = [
    # Not in the issue: `watch` imports `describe` when it is called, and raises OSError where no descriptor is left.
    Known(0, "limits/descriptors-run-out", ""),
    Known(1, "children/pid1-*", ""),
    Known(1, "children/subreaper-*", ""),
    Known(1, "children/supervised", "^waited for: "),
    Known(2, "*", "^end SIGCHLD: "),
    Known(2, "children/sigchld-blocked", "^pending: "),
    Known(2, "children/wait-thread", "^collected: "),
    Known(2, "signals/wakeup-descriptor", "^written: "),
    Known(3, "signals/method-handler", ""),
    Known(3, "moments/*", "^arrived: .* watched 'never'"),
    Known(4, "hostile/random-length*", "^(calls|end random state of torch): "),
    Known(4, "hostile/exiting-length-0", ""),
    Known(4, "hostile/getitems-looked-up-0", "^calls: "),
    Known(4, "hostile/metaclass-0", "^calls: "),
    Known(4, "hostile/properties-*", "^calls: "),
    Known(4, "hostile/*lazy-*", "^calls: "),
    Known(4, "hostile/failing-*", ""),
    Known(4, "hostile/opaque-0", ""),
    Known(5, "hostile/raising-*", ""),
    Known(6, "damage/truncate-*", ""),
    Known(6, "damage/shorten-0", ""),
    Known(6, "damage/overwrite-0", ""),
    Known(8, "many/iterators-alive", ""),
    Known(8, "many/different-loaders", ""),
    Known(9, "*", r"(?s)^(traceback( \(\d\))?|stderr): .*(in _next_data|/profiler/|in step)"),
    Known(9, "errors/stack-in-*", "^stack: "),
    Known(9, "errors/quoted-path-1", "^error: "),
    Known(10, "loops/*-shown", "^fetcher: "),
    Known(10, "surroundings/no-argv", ""),
    Known(10, "surroundings/odd-argv", ""),
    Known(10, "surroundings/no-stderr-but-a-message", "^stdout: "),
]


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
