"""Where run directories live, and how one is made."""

from __future__ import annotations

import errno
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path

from ..base.atomic_write import write_atomically
from ..base.clock import now_ns
from ..base.host import boot_id, host_name
from ..base.started_in import started_in

VARIABLE = "LOADERSCOPE_DIR"

FORMAT = 1  # of the JSON files of a run directory


def runs_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder that holds one folder a run: `LOADERSCOPE_DIR`, or `runs` in the platform's user
    state folder.

    Nothing is created. An empty variable counts as unset; a relative folder is one of where the
    program started.
    """
    chosen = environ.get(VARIABLE, "")
    if chosen:
        return Path(started_in() or "", Path(chosen).expanduser())
    import platformdirs

    return platformdirs.user_state_path("loaderscope", appauthor=False) / "runs"


def create_run(runs: Path, argv: list[str]) -> Path:
    """A new run directory under `runs` (mode 0700), with its `run.json`. Raises OSError."""
    runs.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Ids sort by the time the run began.
    seconds, rest = divmod(time.time_ns(), 1_000_000_000)
    second = time.strftime("%Y%m%d-%H%M%S", time.localtime(seconds))
    path = _first_new(runs / f"{second}-{rest // 1000 + number:06d}" for number in count())
    from ... import __version__

    facts = {
        "format": FORMAT,
        "id": path.name,
        "created_unix_ns": time.time_ns(),
        "clock_ns": now_ns(),
        "boot_id": boot_id(),
        "host": host_name(),
        "argv": argv,
        "python": platform.python_version(),
        "platform": platform_name(),
        "loaderscope": __version__,
        "pid": os.getpid(),
    }
    try:
        write_atomically(path / "run.json", json.dumps(facts))
    except OSError:
        shutil.rmtree(path, ignore_errors=True)
        raise
    return path


def platform_name() -> str:
    """'Linux-6.1.0-x86_64': as `platform.platform()`, which starts `uname` and reads the Python
    binary to say more."""
    system = os.uname()
    return f"{system.sysname}-{system.release}-{system.machine}"


def command_line() -> list[str]:
    """`sys.argv` as texts, whatever the program has made of it."""
    argv = getattr(sys, "argv", None)
    if type(argv) is not list:
        return []
    texts = (os.fsdecode(one) if type(one) is bytes else one for one in argv)
    return [one for one in texts if type(one) is str]


def exclusive_folder(parent: Path, stem: str) -> Path:
    """A new folder `STEM-<n>` (mode 0700), with the first number that is free. Raises OSError."""
    return _first_new(parent / f"{stem}-{number}" for number in count())


def _first_new(paths: Iterator[Path]) -> Path:
    """The first of these folders that could be made (mode 0700). Raises OSError."""
    for path in paths:
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
            return path
    raise FileExistsError


def system_stem(host: str) -> str:
    """What the folders of this host's samplers are called, but for their numbers."""
    return "system-" + ("".join(c if c.isalnum() or c in "._-" else "_" for c in host) or "host")


def temporary_runs() -> Path:
    """Where runs go that no other folder takes: a folder of this user's, made if need be. Raises
    OSError where somebody else has made it."""
    # Not what `tempfile` finds: it would remember that, and the program may still decide otherwise.
    folder = Path(os.environ.get("TMPDIR") or "/tmp") / f"loaderscope-{os.getuid()}"
    runs = folder / "runs"
    runs.mkdir(parents=True, exist_ok=True, mode=0o700)
    if any(each.lstat().st_uid != os.getuid() for each in (folder, runs)):
        raise PermissionError(errno.EACCES, "it belongs to another user", str(folder))
    return runs
