"""`package.module:make_loader`: a DataLoader made by the user's own function, for commands that
need one at hand."""

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

    The current folder is searched too, as `python -m` does. Raises UsageError where there is none,
    and where importing or calling it fails: with the error's own words and the user's line.
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
        raise UsageError(
            f"there is no module {module_name} here: start in its folder, {_EXAMPLE}"
        ) from error
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
    """Which recorded loader this one is like: (name of the process's folder, its number): the same
    data set class, and of several the one with the same batch size. Raises UsageError where none
    is."""
    from ...profiler.record.inspect.inspect_loader import inspect_loader
    from ...profiler.record.inspect.samplers import own_of, sampling_of

    live = read_inspection({"inspection": inspect_loader(loader)}).dataset
    size = sampling_of(own_of(loader)).batch_size
    alike = [
        (process.path.name, each)
        for process in run.processes
        for each in process.loaders
        if _alike(run, each, live)
    ]
    if not alike:
        name = live.type if live is not None else "its data set"
        told = (
            ", ".join(sorted({clean(each.config.get("dataset"), 80) for each in run.loaders}))
            or "none"
        )
        raise UsageError(f"this run recorded no loader over {clean(name, 80)}: it has {told}")
    folder, found = max(
        alike, key=lambda pair: (pair[1].config.get("batch_size") == size, pair[1].count)
    )
    return folder, found.index


def _alike(run: Run, recorded: LoaderRun, live: Part | None) -> bool:
    """Whether both data sets are of one class: defined in the same file under the same qualified
    name, since a script that is run calls its module `__main__` and one that is imported does
    not."""
    if live is None:
        return False
    seen, told = recorded.inspection.dataset, recorded.config.get("dataset")
    if told == live.type:
        return True
    if live.qualname is None or live.module_file is None:
        return False
    if seen is not None and seen.module_file is not None:
        return seen.qualname == live.qualname and _same_file(seen.module_file, live.module_file)
    # Data sets were not looked at (LOADERSCOPE_INSPECT=0): a class without a module is the script's
    # own.
    return told == live.qualname and Path(live.module_file).name in {
        Path(each).name for each in _script(run)
    }


def _script(run: Run) -> tuple[str, ...]:
    """The file that was run, as far as the command line tells: `train.py`, or that of `-m
    package.train`."""
    if run.argv[:1] == ("-m",) and len(run.argv) > 1:
        return (f"{run.argv[1].rpartition('.')[2]}.py",)
    return run.argv


def _same_file(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _told(error: Exception) -> str:
    """The error's own words, and the line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"
