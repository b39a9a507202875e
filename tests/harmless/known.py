"""By what a watched run can be told from a bare one, and why. `docs/harmless.md` says the same to
users.

A difference that is listed here is an expected failure; once no program shows it any more, the list
is what fails.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from signal import SIGCHLD
from typing import NamedTuple


class Known(NamedTuple):
    why: str
    programs: str  # a pattern of names
    difference: str  # an expression found in its line
    ways: str = "*"  # a pattern of ways of watching


ADOPTER = (
    "where the training adopts orphans, the sampler's parent is its child, though no wait finds it"
)
SUPERVISOR = (
    "the sampler is an orphan: a supervisor that adopts those sees it end, after the training"
)
SWITCHING = "the iterator behind which others take turns has a frame"
WORKERS_TRIED = (
    "where workers are tried, torch sets the handler of SIGCHLD that it sets with workers"
)
WORKERS_BATCH = (
    "a batch that a worker made holds a descriptor for each tensor, and the loop still had it"
)
KEPT_WORKERS = "whether workers are kept between epochs is one of the settings"
LISTED = (
    "torch calls functions of ours: for an iterator made, a worker started, a batch looked at, a "
    "module imported"
)
EXTENSIONS = (
    "what faulthandler says of a fatal error ends with all extension modules, and some are ours"
)
PYTHON_FORM = "a hook in Python has a frame; the compiled form has none"

ADOPTED = r"^(end )?children: bare \[\], watched \['loaderscope', 'python'\]$"
TRACED = r"(?s)^(traceback( \(\d\))?|stderr):"
WORKERS = "active children|children|waited for|threads"
FRAMES = (
    r"^(profiler|tracer): frames of ours: bare \[\], watched "
    r"\[('(fetchers\.py __iter__|loader_kinds\.py (new|__getattr__)|imports\.py find_spec"
    r"|making_place\.py __get__)'(, )?)+\]$"
)

KNOWN: list[Known] = [
    Known(ADOPTER, "children/pid1-*", ADOPTED),
    Known(ADOPTER, "children/subreaper-*", ADOPTED),
    Known(SUPERVISOR, "children/supervised", r"^waited for: bare \[0\], watched \[0, 0\]$"),
    Known(PYTHON_FORM, "*", rf"{TRACED} .*/profiler/native/python_\w+\.py", "*-pure"),
    Known(SWITCHING, "*", rf"{TRACED} .*/tuning/switch/switching\.py", "tuned"),
    Known(SWITCHING, "loops/*-shown", r"^iterator: .*tuning\.switch\.turns\.Turns", "tuned"),
    Known(WORKERS_BATCH, "lo*/*-0*", r"^end descriptors: bare 4, watched 7$", "tuned"),
    Known(WORKERS_TRIED, "talk/*-0", rf"^end handlers: {int(SIGCHLD)}: bare '0', [^;]*$", "[dr]e*"),
    Known(KEPT_WORKERS, "loops/persistent-*", rf"^end ({WORKERS}): bare ", "tuned"),
    Known(WORKERS_TRIED, "lo*/*-0*", rf"^end handlers: {int(SIGCHLD)}: bare [^;]*$", "tuned"),
    Known(LISTED, "errors/listed-*", FRAMES),
    Known(
        EXTENSIONS, "errors/fatal", r"(?s)^stderr: .*Extension modules: [^\n]*\.profiler\.native"
    ),
    Known(PYTHON_FORM, "errors/stack-in-*", "^stack: ", "*-pure"),
    Known(PYTHON_FORM, "errors/recursion", r"^deeper( \(\d\))?: bare \d+, watched \d+$", "*-pure"),
]


def known(program: str, difference: str, way: str) -> Known | None:
    """What explains this difference."""
    for one in KNOWN:
        fits = fnmatchcase(program, one.programs) and fnmatchcase(way, one.ways)
        if fits and re.search(one.difference, difference):
            return one
    return None
