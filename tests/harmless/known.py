"""Whether a watched run can be told from bare ones; by what, and why: docs/harmless.md says the same.

A known difference is an expected failure; once no program shows it any more, the list fails.
"""

from __future__ import annotations

import difflib
import re
from fnmatch import fnmatchcase
from signal import SIGCHLD
from typing import Any, NamedTuple

from .catalogue import Program
from .stage import Seen


class Known(NamedTuple):
    why: str
    programs: str  # a pattern of names
    difference: str  # an expression found in its line
    ways: str = "*"  # a pattern of ways of watching


ADOPTER = (
    "where the training adopts orphans, the sampler's parent is its child, which no wait finds"
)
SUPERVISOR = "a supervisor that adopts orphans sees the sampler end, after the training"
SWITCHING = "the iterator behind which others take turns has a frame"
WORKERS_TRIED = (
    "where workers are tried, torch sets the handler of SIGCHLD that it sets with workers"
)
WORKERS_BATCH = (
    "a batch of a worker's holds a descriptor for each tensor, and the loop still had it"
)
KEPT_WORKERS = "whether workers are kept between epochs is one of the settings"
LISTED = "torch calls functions of ours: for iterators, workers, a batch looked at, an import"
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

NAMED_LAST = r"(?s)^stderr: .*Extension modules: [^\n]*\.profiler\.native"

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
    Known(EXTENSIONS, "errors/fatal", NAMED_LAST),
    Known(PYTHON_FORM, "errors/stack-in-*", "^stack: ", "*-pure"),
    Known(PYTHON_FORM, "errors/recursion", r"^deeper( \(\d\))?: bare \d+, watched \d+$", "*-pure"),
]


def known(program: str, difference: str, way: str) -> Known | None:
    for one in KNOWN:
        fits = fnmatchcase(program, one.programs) and fnmatchcase(way, one.ways)
        if fits and re.search(one.difference, difference):
            return one
    return None


# A watched process may have so many more than a bare one: its lanes, and what we imported (6 seen).
MORE = {"end maps": 30, "end descriptors": 0}
_OF_ONE_RUN = re.compile(
    r"(?i)\b(pids?|process|psm_|torch_)([ (=:]*)\d+(, ?\d+)*|0x[0-9a-f]+|pym-[\w-]+"
)
# Looked at by itself.
_ASIDE = ("folder", "cannot be run here")


def differences(program: Program, bare: list[Seen], watched: Seen) -> list[str]:
    """One line for each thing that all bare runs agree on and the watched one has otherwise."""
    names = dict.fromkeys(name for seen in [*bare, watched] for name in seen if name not in _ASIDE)
    found = []
    for name in names:
        values = [_comparable(seen, name) for seen in bare]
        if name in program.unjudged or any(value != values[0] for value in values):
            continue
        value = _comparable(watched, name)
        if name == "stderr" and program.may_speak:
            value, said = _without_our_lines(value or "")
            if len(said) > 1:
                found.append(f"more than one line of ours: {said}")
        if not _alike(name, values[0], value):
            found.append(f"{name}: {_told(values[0], value)}")
    return found


def judged(program: Program, bare: list[Seen]) -> tuple[int, int]:
    names = {name for seen in bare for name in seen if name not in _ASIDE}
    same = [name for name in names if len({repr(_comparable(seen, name)) for seen in bare}) == 1]
    return len(names), len([name for name in same if name not in program.unjudged])


def _alike(name: str, bare: Any, watched: Any) -> bool:
    if name in MORE and bare is not None and watched is not None:
        return bool(watched <= bare + MORE[name])
    return bool(bare == watched)


def _comparable(seen: Seen, name: str) -> Any:
    return _masked(seen.get(name), seen["folder"]) if name in seen else None


def _masked(value: Any, folder: str) -> Any:
    """Less what is of one run only: its folder, process ids, addresses."""
    if isinstance(value, str):
        return _OF_ONE_RUN.sub(r"\1\2#", value.replace(folder, "FOLDER"))
    if isinstance(value, list):
        return [_masked(inner, folder) for inner in value]
    if isinstance(value, dict):
        return {key: _masked(inner, folder) for key, inner in value.items()}
    return value


def _without_our_lines(text: str) -> tuple[str, list[str]]:
    lines = text.splitlines(keepends=True)
    ours = [line for line in lines if line.startswith("loaderscope: ")]
    return "".join(line for line in lines if line not in ours), ours


def _told(bare: Any, watched: Any) -> str:
    if isinstance(bare, str) and isinstance(watched, str) and max(len(bare), len(watched)) > 80:
        both = bare.splitlines(), watched.splitlines()
        lines = difflib.unified_diff(*both, "bare", "watched", lineterm="", n=0)
        return "\n" + "\n".join(list(lines)[:40])
    if isinstance(bare, dict) and isinstance(watched, dict):
        pairs = {key: (bare.get(key), watched.get(key)) for key in {**bare, **watched}}
        differ = {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}
        return "; ".join(f"{key}: bare {a!r}, watched {b!r}" for key, (a, b) in differ.items())
    return f"bare {bare!r}, watched {watched!r}"[:1500]
