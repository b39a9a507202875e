"""The user's source files as this process runs them, by hash: whoever changes one later can tell
whether it is still the same."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Collection
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ...guard.users_code import of_user
from ...store.making import MAX_FILES
from .inspect_source import content

# How much later than the process a file may have been written: start times are rounded.
SLACK_S = 2.0
_NOT_PROGRAMS = ("sitecustomize", "usercustomize")
_VARIABLES: Any = vars(ModuleType)["__dict__"]  # no module's own `__getattr__` runs


def hashes_of_sources(started: float | None, known: Collection[str]) -> dict[str, str]:
    """SHA-256 by path of each imported module of the user's that is not known yet.

    Files written after the process started (UNIX time) may not be what it runs: they are left out,
    as are those beyond MAX_FILES and MAX_FILE_BYTES. All are, where nothing says when that was.
    """
    if started is None:
        return {}
    found: dict[str, str] = {}
    for name, module in list(sys.modules.items()):
        if not isinstance(module, ModuleType) or name in _NOT_PROGRAMS:
            continue
        file = _VARIABLES.__get__(module).get("__file__")
        if type(file) is not str or not file.endswith(".py") or not of_user(file):
            continue
        path = os.path.abspath(file)
        if path in known or path in found or not of_user(path):
            continue
        if len(known) + len(found) >= MAX_FILES:
            break
        if (data := content(path, started + SLACK_S)) is not None:
            found[path] = hashlib.sha256(data).hexdigest()
    return found


def module_run() -> str:
    """The module that `python -m` runs, "" for a script."""
    main = sys.modules.get("__main__")
    spec = _VARIABLES.__get__(main).get("__spec__") if isinstance(main, ModuleType) else None
    name = spec.name if type(spec) is ModuleSpec else ""
    return name.removesuffix(".__main__") if type(name) is str else ""
