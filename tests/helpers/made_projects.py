"""Projects of benchmarks/fix_projects.py whose loaders are really made, with nothing recorded."""

import contextlib
import hashlib
import runpy
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import loaderscope
from loaderscope.profiler.base.tolerant import fitted
from loaderscope.profiler.record.inspect.making_place import making_of, note_makings
from loaderscope.profiler.store.making import Making

sys.path.append(str(Path(loaderscope.__file__).resolve().parent / "benchmarks"))

import fix_projects

LOOP = fix_projects.LOOP
PROJECTS = {each.name: each for each in fix_projects.PROJECTS}


def lay(folder: Path, files: Mapping[str, str]) -> dict[str, str]:
    """Write the files; their hashes by path, as a run records them."""
    hashes = {}
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        if name.endswith(".py"):
            hashes[str(path)] = hashlib.sha256(text.encode()).hexdigest()
    return hashes


@contextlib.contextmanager
def loader_of(folder: Path, arguments=(), script="train.py") -> Iterator[Any]:
    """The `loader` that the script makes; what it imports from the folder is forgotten after."""
    before, path, argv = set(sys.modules), list(sys.path), sys.argv
    end = note_makings()
    try:
        with contextlib.chdir(folder):
            sys.path.insert(0, str(folder))
            sys.argv = [script, *arguments]
            yield runpy.run_path(str(folder / script), run_name="__main__")["loader"]
    finally:
        end()
        sys.argv, sys.path[:] = argv, path
        for name in set(sys.modules) - before:
            if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]


def made_in(folder: Path, arguments=(), script="train.py") -> Making:
    """Where the script makes its `loader`."""
    with loader_of(folder, arguments, script) as loader:
        return fitted(making_of(loader), Making)


def without_loop(files: Mapping[str, str]) -> dict[str, str]:
    """The files without their training loop, which takes seconds."""
    found = dict(files)
    for loop in (LOOP, LOOP.replace("batch.sum", "batch[0].sum"), LOOP.replace("\n", "\r\n")):
        found = {name: text.replace(loop, "") for name, text in found.items()}
    return found
