"""The temporary folder of a trial. It is removed however the trial ends."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from . import janitor

PREFIX = "loaderscope-try-"


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
    this process dies. Raises OSError."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
    process = subprocess.Popen(
        [sys.executable, "-m", janitor.__name__, str(folder)],
        cwd=folder,  # Python looks for modules there first
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdin is not None
    try:
        yield Scratch(folder, process.stdin)
    finally:
        with suppress(OSError):
            process.stdin.close()
        process.wait()
