"""Runs of one job that lie apart, each node's in a folder of its own, copied together into one."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from ...base.atomic_write import write_atomically
from ...base.errors import UsageError
from ...base.metadata import clean
from ...base.tolerant import as_json
from ..lanes.block import SOCKET_NAME
from ..rundir import exclusive_folder
from .run_finder import find_run
from .run_reader import read_run_json

_PART = re.compile(r"(p\d{1,12}|system-.+)-\d{1,9}")


def merge_runs(names: Sequence[str], out: Path) -> Path:
    """The runs of these names or paths as one run in the new folder `out`; its command and time are
    those of the earliest. Nothing of them is changed. Raises UsageError, RunNotFound,
    RunUnreadable."""
    if out.exists():
        raise UsageError(f"{clean(out)} is already there: name a folder that is not")
    paths = [find_run(name) for name in names]
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError("one of these runs is named twice")
    found = [(read_run_json(path), path) for path in paths]
    found.sort(key=lambda each: (each[0].created_unix_ns or 0, each[1]))
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
