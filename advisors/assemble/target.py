"""`package.module:make_loader`: a DataLoader made by the user's own function, for commands that
need a live one."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean
from ...profiler.store.inspection import Part, read_inspection
from ...profiler.store.run.run import LoaderRun, Run

_EXAMPLE = "for example: train:make_loader, a function without arguments that returns a DataLoader"


def load_target(target: str) -> Any:
    """The DataLoader that `module:name` stands for: the object itself, or what the function of that
    name returns.

    The current folder is searched too, as `python -m` does. Raises UsageError if there is none,
    and if importing or calling it fails: with the error's own words and the user's line.
    """
    if not all(target.partition(":")):
        raise UsageError(f"{target!r} does not name a loader: write MODULE:NAME, {_EXAMPLE}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        from torch.utils.data import DataLoader

        found = resolve_name(target)
        if callable(found) and not isinstance(found, DataLoader):
            found = found()
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [each for each in frames if each.filename.startswith(here)]
        where = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
        raise UsageError(
            f"{target} gives no loader: {type(error).__name__}: {error}{where}"
        ) from error
    if not isinstance(found, DataLoader):
        raise UsageError(f"{target} gives a {type(found).__name__}, not a DataLoader: {_EXAMPLE}")
    return found


def place_of(run: Run, loader: Any) -> tuple[str, int]:
    """Which recorded loader this one is like: (name of the process's folder, its number): the same
    data set class, and of several the one with the same batch size. Raises UsageError if none
    is."""
    from ...profiler.record.inspect.inspect_loader import inspect_loader
    from ...profiler.record.inspect.samplers import own_of, sampling_of

    live = read_inspection({"inspection": inspect_loader(loader)}).dataset
    size = sampling_of(own_of(loader)).batch_size
    alike = [
        (each.config.get("batch_size") == size, each.count, process.path.name, each.index)
        for process in run.processes
        for each in process.loaders
        if live is not None and _alike(each, live)
    ]
    if not alike:
        name = live.type if live is not None else "its data set"
        recorded = {clean(each.config.get("dataset"), 80) for each in run.loaders}
        has = ", ".join(sorted(recorded)) or "none"
        raise UsageError(f"this run recorded no loader over {clean(name, 80)}: it has {has}")
    _, _, folder, index = max(alike, key=lambda found: found[:2])
    return folder, index


def _alike(recorded: LoaderRun, live: Part) -> bool:
    """Whether both data sets are of one class: defined in the same file under the same qualified
    name, since a script that is run calls its module `__main__` and one that is imported does
    not."""
    seen = recorded.inspection.dataset
    if recorded.config.get("dataset") == live.type:
        return True
    if seen is None or None in (seen.module_file, live.module_file):
        return False
    same_file = os.path.realpath(seen.module_file or "") == os.path.realpath(live.module_file or "")
    return seen.qualname == live.qualname is not None and same_file
