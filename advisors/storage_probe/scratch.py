"""A temporary folder that is removed when the probe ends, also by a signal other than SIGKILL."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean
from ...profiler.base.mounts import Mounts

PREFIX = "loaderscope-probe-"

# Left free for others: at least this many bytes, and this part of what is used.
RESERVE_BYTES = 64_000_000
RESERVE_SHARE = 0.1

Handler = Callable[[int, FrameType | None], object] | signal.Handlers


def free_bytes(path: Path) -> int:
    """What this user may still write to the file system of `path`. Raises OSError."""
    return shutil.disk_usage(path).free


def room(path: Path) -> int:
    """Bytes a probe may use on the file system of `path`."""
    return max(0, round((free_bytes(path) - RESERVE_BYTES) / (1 + RESERVE_SHARE)))


def place(data: Sequence[Path], temp: Path | None, needed: int) -> tuple[Path, list[str]]:
    """Where to make the folder, and notes: `temp`, or a folder on the data's file system, or the
    usual temporary one, but none within the data.

    The first with enough room is taken, else the one with the most. Raises UsageError.
    """
    folders = [folder.resolve() for folder in data]
    device = folders[0].stat().st_dev
    near = [Path(tempfile.gettempdir()), Path.cwd(), *folders[0].parents]
    usable = [
        path
        for path in (each.expanduser().resolve() for each in ([temp] if temp else near))
        if path.is_dir() and os.access(path, os.W_OK | os.X_OK)
        if not any(map(path.is_relative_to, folders))
    ]
    if not usable:
        raise UsageError(
            f"{clean(temp, 200)} is not a folder outside of the data that can be written to"
            if temp
            else "no folder outside of the data can be written to: name one with --temp"
        )
    best = max(usable, key=lambda e: (e.stat().st_dev == device, min(needed, room(e))))
    if best.stat().st_dev == device:
        return best, []
    there, here = (file_system(path) or "unknown" for path in (folders[0], best))
    return best, [
        f"the copies were on another file system ({here}) than the data ({there}): the rates are "
        "of that one; --temp names a folder to use"
    ]


def file_system(path: Path) -> str | None:
    """The type of the file system that holds `path`, as the kernel names it."""
    found = Mounts().of(os.path.realpath(path))
    return clean(found.type, 40) if found is not None else None


@contextmanager
def scratch(parent: Path) -> Iterator[Path]:
    """A folder below `parent`, mode 0700, removed at the end: also after an exception, Ctrl-C,
    SIGTERM or SIGHUP."""
    # Signals that end the process unwind the block first. Handlers set by others stay.
    ending = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is signal.SIG_DFL]
    with _handling(_leave, ending):
        try:
            folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        except OSError as error:
            raise UsageError(
                f"{clean(parent, 200)} cannot be written to: {error.strerror or error}"
            ) from error
        try:
            yield folder
        finally:
            # A second Ctrl-C or SIGTERM must not leave half of the folder behind.
            with _handling(signal.SIG_IGN, (signal.SIGINT, signal.SIGTERM)):
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _handling(handler: Handler, numbers: Sequence[signal.Signals]) -> Iterator[None]:
    """Handle these signals within the block, in the main thread only."""
    main = threading.current_thread() is threading.main_thread()
    previous = {number: signal.signal(number, handler) for number in numbers if main}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before or signal.SIG_DFL)


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)  # as shells say it
