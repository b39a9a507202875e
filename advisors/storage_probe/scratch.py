"""A temporary folder that is removed when the probe ends, also by a signal other than SIGKILL."""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean

PREFIX = "loaderscope-probe-"

# Left free for others.
RESERVE_BYTES = 64_000_000


def room(path: Path) -> int:
    """Bytes a probe may use on the file system of `path`."""
    return max(0, shutil.disk_usage(path).free - RESERVE_BYTES)


def place(data: Sequence[Path], temp: Path | None) -> Path:
    """Where to make the folder: `temp`, or the nearest folder above the data that can be written
    to, or the usual temporary one, but none within the data. Raises UsageError."""
    folders = [folder.resolve() for folder in data]
    for path in [temp] if temp else [*folders[0].parents, Path(tempfile.gettempdir())]:
        found = path.expanduser().resolve()
        within = any(map(found.is_relative_to, folders))
        if not within and os.access(found, os.W_OK | os.X_OK) and found.is_dir():
            return found
    raise UsageError(
        f"{clean(temp, 200)} is not a folder outside of the data that can be written to"
        if temp
        else "no folder outside of the data can be written to: name one with --temp"
    )


@contextmanager
def scratch(parent: Path) -> Iterator[Path]:
    """A folder below `parent`, mode 0700, removed at the end: also after an exception, Ctrl-C,
    SIGTERM or SIGHUP."""
    ending = signal.SIGTERM, signal.SIGHUP
    previous = [signal.signal(number, lambda got, _: sys.exit(128 + got)) for number in ending]
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    try:
        yield folder
    finally:
        for number in ending:  # a second one must not leave half of the folder behind
            signal.signal(number, signal.SIG_IGN)
        shutil.rmtree(folder, ignore_errors=True)
        for number, before in zip(ending, previous, strict=True):
            signal.signal(number, before)
