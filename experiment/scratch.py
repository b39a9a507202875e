"""The temporary folder of a trial. It is removed however the trial ends."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from . import janitor

PREFIX = "loaderscope-try-"
LOCK = "lock"


class Scratch:
    """A folder, and the standard input of its janitor."""

    def __init__(self, folder: Path, janitor: IO[str]) -> None:
        self.folder, self._janitor = folder, janitor

    def notify(self, change: str) -> None:
        """`+PID`: a side's first process has started. `-PID`: it has ended."""
        with suppress(OSError):
            print(change, file=self._janitor, flush=True)


@contextmanager
def scratch_folder() -> Iterator[Scratch]:
    """A temporary folder. It is removed, and all sides are killed, at the end of the block or when
    this process dies. If the janitor is killed too, the next trial does it. Raises OSError."""
    _sweep(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
    # The janitor inherits the lock, which is held as long as one of the two lives.
    new = folder / "new"
    lock = os.open(new, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    new.rename(folder / LOCK)  # a file with this name is always locked first
    process = subprocess.Popen(
        [sys.executable, "-m", janitor.__name__, str(folder)],
        cwd=folder,  # Python looks for modules there first
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        pass_fds=(lock,),
    )
    assert process.stdin is not None
    try:
        yield Scratch(folder, process.stdin)
    finally:
        with suppress(OSError):
            process.stdin.close()
        process.wait()
        os.close(lock)


def _sweep(where: Path) -> None:
    """Remove this user's folders that no trial holds any more."""
    for folder in where.glob(PREFIX + "*"):
        with suppress(OSError):
            if folder.lstat().st_uid != os.getuid() or folder.is_symlink():
                continue
            with (folder / LOCK).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
