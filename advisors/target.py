"""`package.module:make_loader`: a DataLoader made by the user's own function, for commands that need one at hand."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path
from typing import Any

from ..profiler.describe import name_of
from ..profiler.errors import UsageError
from ..profiler.metadata import clean
from ..profiler.run import Run

_EXAMPLE = "for example: train:make_loader, a function without arguments that returns a DataLoader"


def load_target(target: str) -> Any:
    """The DataLoader that `module:name` stands for: the object itself, or what the function of that name returns.

    The current folder is searched too, as `python -m` does. Raises UsageError where there is none, and where importing
    or calling it fails: with the error's own words and the user's line.
    """
    module_name, colon, name = target.partition(":")
    if not colon or not module_name or not name:
        raise UsageError(f"{target!r} does not name a loader: write MODULE:NAME, {_EXAMPLE}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name + ".").startswith(error.name + "."):
            raise UsageError(f"importing {module_name} failed: {error}") from error
        raise UsageError(f"there is no module {module_name} here: start in its folder, {_EXAMPLE}") from error
    except Exception as error:
        raise UsageError(f"importing {module_name} failed: {_told(error)}") from error
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
        if found is None:
            raise UsageError(f"{module_name} has no {name}: {_EXAMPLE}")
    from torch.utils.data import DataLoader

    if callable(found) and not isinstance(found, DataLoader):
        try:
            found = found()
        except Exception as error:
            raise UsageError(f"{target} failed: {_told(error)}") from error
    if not isinstance(found, DataLoader):
        raise UsageError(f"{target} gives a {type(found).__name__}, not a DataLoader: {_EXAMPLE}")
    return found


def place_of(run: Run, loader: Any) -> tuple[str, int]:
    """Which recorded loader this one is like: (name of the process's folder, its number): the same data set class, and
    of several the one with the same batch size. Raises UsageError where none is."""
    name = name_of(type(loader.dataset))
    alike = [
        (process.path.name, each)
        for process in run.processes
        for each in process.loaders
        if each.config.get("dataset") == name or str(each.config.get("dataset")).endswith(f".{name}")
    ]
    if not alike:
        told = ", ".join(sorted({clean(each.config.get("dataset"), 80) for each in run.loaders})) or "none"
        raise UsageError(f"this run recorded no loader over {clean(name, 80)}: it has {told}")
    folder, found = max(alike, key=lambda pair: (pair[1].config.get("batch_size") == loader.batch_size, pair[1].count))
    return folder, found.index


def _told(error: Exception) -> str:
    """The error's own words, and the line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"
