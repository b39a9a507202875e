"""Runs of one job that lie apart, each node's in a folder of its own, copied together into one."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ...base.atomic_write import write_atomically
from ...base.errors import LoaderscopeError, RunUnreadable, UsageError
from ...base.metadata import clean
from ...base.tolerant import as_json
from ..lanes.block import SOCKET_NAME
from ..rundir import exclusive_folder
from .run_finder import find_run
from .run_reader import read_run_json

_PART = re.compile(r"(p\d{1,12}|system-.+)-\d{1,9}")
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def merge_runs(
    names: Sequence[str], out: Path, sure: Callable[[Sequence[str]], bool] = lambda scripts: True
) -> Path:
    """The runs of these names, paths or fsspec locations (`s3://…`) as one run in the new folder
    `out`; its command and time are those of the earliest. Nothing of them is changed. `sure` is
    asked where they are of different scripts. Raises UsageError, RunNotFound, RunUnreadable."""
    if out.exists():
        raise UsageError(f"{clean(out)} is already there: name a folder that is not")
    with _brought_here(names) as paths:
        if len({path.resolve() for path in paths}) < len(paths):
            raise UsageError("one of these runs is named twice")
        found = [(read_run_json(path), path) for path in paths]
        found.sort(key=lambda each: (each[0].created_unix_ns or 0, each[1]))
        scripts = dict.fromkeys(_script(facts.argv) for facts, _ in found)
        if len(scripts) > 1 and not sure(list(scripts)):
            raise UsageError(
                f"these are runs of different scripts ({', '.join(scripts)}), not of one job's "
                "nodes: --yes merges them all the same"
            )
        no_socket = shutil.ignore_patterns(SOCKET_NAME)
        try:
            out.mkdir(parents=True, mode=0o700)
            for _, path in found:
                for part in sorted(path.iterdir()):
                    match = _PART.fullmatch(part.name)
                    if match and part.is_dir() and not part.is_symlink():
                        # Processes of different hosts may have one id.
                        target = exclusive_folder(out, match[1])
                        shutil.copytree(part, target, True, no_socket, dirs_exist_ok=True)
            merged = [facts.id or path.name for facts, path in found]
            write_atomically(
                out / "run.json",
                json.dumps({**as_json(found[0][0]), "id": out.name, "merged": merged}),
            )
        except (OSError, shutil.Error) as error:
            shutil.rmtree(out, ignore_errors=True)
            raise UsageError(f"{clean(out)} cannot be written: {clean(error, 300)}") from error
    return out


def _script(argv: Sequence[str]) -> str:
    """'train.py', '-m package.train': a job's nodes may have it in different folders."""
    if argv[:1] == ("-m",):
        return clean(" ".join(argv[:2]), 80)
    return clean(Path(argv[0]).name if argv else "?", 80)


@contextmanager
def _brought_here(names: Sequence[str]) -> Iterator[list[Path]]:
    """Where each run lies on this machine; copies of those that lie elsewhere are removed in the
    end."""
    with tempfile.TemporaryDirectory(prefix="loaderscope-") as folder:
        yield [
            _fetched(name, Path(folder) / str(number)) if _REMOTE.match(name) else find_run(name)
            for number, name in enumerate(names)
        ]


def _fetched(url: str, folder: Path) -> Path:
    import fsspec

    try:
        files, path = fsspec.core.url_to_fs(url)
        files.get(path.rstrip("/") + "/", str(folder) + "/", recursive=True)
    except LoaderscopeError:
        raise
    except Exception as error:  # each file system has its own
        raise RunUnreadable(
            f"{clean(url)} cannot be read: {clean(error, 300) or type(error).__name__}"
        ) from error
    return folder
