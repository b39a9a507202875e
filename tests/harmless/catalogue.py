"""What a program is, and where all are found: a function that is given `watch`, which hands a loader
back recorded or (bare) as it is. It says what it sees, and may end in any way a training may."""

from __future__ import annotations

import importlib
import json
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Watch = Callable[[Any], Any]

# How a program is watched: by which call, and in which form of the hot path.
WATCHED = ("watch", "all", "watch-pure", "all-pure")

# Watched, with other settings every two batches; and bare, for comparison with that. In both, samples
# are the same whoever makes them: random streams of workers are others under other settings.
TUNED, STILL = "tuned", "still"
# Tuned, and held against a bare run of just the same program: with other settings every two batches,
# and as tuning decides.
RESTLESS, DECIDES = "restless", "decides"
_STILL_VARIABLE = "HARMLESS_STILL"

# Every one of these declares its programs when imported. `late` imports torch in functions only.
_CODE = ("table", "loaders", "hostile", "errors", "threads", "talkback", "batching")
MODULES = (*_CODE, "children", "signals", "limits", "many", "late")


@dataclass(frozen=True)
class Program:
    """How it is to be run. Its name is FAMILY/WHAT: docs/harmless.md promises by either."""

    name: str
    function: Callable[[Watch], None]
    module: str
    # Of WATCHED, TUNED, RESTLESS, DECIDES; or "run", for a program of its own interpreter.
    watched: tuple[str, ...]
    recorded: bool = True  # watched, batches must have been recorded
    may_speak: bool = False  # one line of ours on standard error is right
    prepared: str = ""  # what `preparing` does before the program begins
    # Of a Python of its own; None: a fork of one that has imported torch.
    options: tuple[str, ...] | None = None
    limit_s: float = 60.0
    counts_sigchld: bool = False
    alone: bool = False  # nothing else of ours runs meanwhile; `make test-slow` runs it
    unjudged: tuple[str, ...] = ()  # what two bare runs may agree on by chance


def still() -> bool:
    """Whether samples, and what befalls one, must not depend on who makes it; in workers too."""
    return _STILL_VARIABLE in os.environ


def be_still() -> None:
    os.environ[_STILL_VARIABLE] = "1"


_PROGRAMS: dict[str, Program] = {}
_log = -1  # where `say` writes, in this process and in those forked from it


def program(name: str, **how: Any) -> Callable[[Callable[[Watch], None]], Callable[[Watch], None]]:
    """Declares a program. The way it is watched goes by the name, unless said; `tuned`: TUNED too."""

    def declare(function: Callable[[Watch], None]) -> Callable[[Watch], None]:
        assert name not in _PROGRAMS, name
        ways = how.pop("watched", None) or (WATCHED[zlib.crc32(name.encode()) % len(WATCHED)],)
        ways = (*ways, TUNED) if how.pop("tuned", False) else ways
        module = function.__module__.rpartition(".")[2]
        _PROGRAMS[name] = Program(name, function, module, tuple(ways), **how)
        return function

    return declare


def load(module: str) -> None:
    importlib.import_module(f"harmless.programs.{module}")


def programs() -> dict[str, Program]:
    for module in MODULES:
        load(module)
    return dict(_PROGRAMS)


def find(name: str) -> Program:
    return _PROGRAMS[name]


def say(what: str, value: Any) -> None:
    """Notes what the program sees, at once: it may be killed at any moment."""
    if _log >= 0:
        os.write(_log, (json.dumps([what, value]) + "\n").encode())


def say_into(descriptor: int) -> None:
    global _log
    _log = descriptor
