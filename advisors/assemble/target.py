"""`package.module:make_loader`: a DataLoader made by the user's own function, for commands that
need a live one."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from pathlib import Path
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
    module_name, colon, name = target.partition(":")
    if not colon or not module_name or not name:
        raise UsageError(f"{target!r} does not name a loader: write MODULE:NAME, {_EXAMPLE}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and f"{module_name}.".startswith(f"{missing}."):
            raise UsageError(
                f"there is no module {module_name} here: start in its folder, {_EXAMPLE}"
            ) from error
        raise UsageError(f"importing {module_name} failed: {_told(error)}") from error
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
        if live is not None and _alike(run, each, live)
    ]
    if not alike:
        name = live.type if live is not None else "its data set"
        recorded = {clean(each.config.get("dataset"), 80) for each in run.loaders}
        has = ", ".join(sorted(recorded)) or "none"
        raise UsageError(f"this run recorded no loader over {clean(name, 80)}: it has {has}")
    _, _, folder, index = max(alike, key=lambda found: found[:2])
    return folder, index


def _alike(run: Run, recorded: LoaderRun, live: Part) -> bool:
    """Whether both data sets are of one class: defined in the same file under the same qualified
    name, since a script that is run calls its module `__main__` and one that is imported does
    not."""
    seen, name = recorded.inspection.dataset, recorded.config.get("dataset")
    if name == live.type:
        return True
    if live.qualname is None or live.module_file is None:
        return False
    if seen is not None and seen.module_file is not None:
        same_file = os.path.realpath(seen.module_file) == os.path.realpath(live.module_file)
        return seen.qualname == live.qualname and same_file
    # Data sets were not looked at (LOADERSCOPE_INSPECT=0): a class without a module is the script's
    # own. The script is `train.py`, or that of `-m package.train`.
    script = run.argv
    if run.argv[:1] == ("-m",) and len(run.argv) > 1:
        script = (f"{run.argv[1].rpartition('.')[2]}.py",)
    return name == live.qualname and Path(live.module_file).name in {Path(s).name for s in script}


def _told(error: Exception) -> str:
    """The error's own words, and the line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"
