"""A temporary folder of one's own that goes away, whatever ends the probe short of a SIGKILL."""

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

import platformdirs

from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean
from ...profiler.base.mounts import Mounts

PREFIX = "loaderscope-probe-"

# Left free for everybody else: a part of what is needed, and at least this.
RESERVE_BYTES = 64_000_000
RESERVE_SHARE = 0.1

FreeBytes = Callable[[Path], int]


def free_bytes(path: Path) -> int:
    """What this user may still write to the file system of `path`. Raises OSError."""
    return shutil.disk_usage(path).free


def room(path: Path, free: FreeBytes = free_bytes) -> int:
    """Bytes a probe may use on the file system of `path`."""
    return max(0, round((free(path) - RESERVE_BYTES) / (1 + RESERVE_SHARE)))


def place(
    data: Sequence[Path], temp: Path | None, needed: int, free: FreeBytes = free_bytes
) -> tuple[Path, list[str]]:
    """Where to make the folder, and notes: `temp`, or a folder on the data's file system, or the
    usual temporary one.

    Never within the data. One with less room than `needed` is taken only where no other has more.
    Raises UsageError.
    """
    folders = [folder.resolve() for folder in data]
    if temp is not None:
        path = temp.expanduser()
        if not (path.is_dir() and os.access(path, os.W_OK | os.X_OK)):
            raise UsageError(f"{clean(path, 200)} is not a folder that can be written to")
        if _within(path.resolve(), folders):
            raise UsageError(
                f"{clean(path, 200)} lies within the data, where nothing is written: name another "
                "folder"
            )
        candidates = [path.resolve()]
    else:
        candidates = [
            path for path in _candidates(folders) if not _within(path, folders) and _writable(path)
        ]
    if not candidates:
        raise UsageError("no folder outside of the data can be written to: name one with --temp")
    best = next((path for path in candidates if room(path, free) >= needed), None)
    best = best or max(candidates, key=lambda path: room(path, free))
    if _device(best) == _device(folders[0]):
        return best, []
    there, here = file_system(folders[0]) or "unknown", file_system(best) or "unknown"
    where = f"on another file system ({here}) than the data ({there})"
    return best, [
        f"the copies were {where}: the rates are of that one; --temp names a folder to use"
    ]


def file_system(path: Path, mounts: Mounts | None = None) -> str | None:
    """The type of the file system that holds `path`, as the kernel names it."""
    found = (mounts or Mounts()).of(os.path.realpath(path))
    return clean(found.type, 40) if found is not None else None


@contextmanager
def scratch(parent: Path) -> Iterator[Path]:
    """A folder below `parent`, mode 0700, removed at the end: also after an exception, Ctrl-C,
    SIGTERM or SIGHUP."""
    with _signals_unwind():
        try:
            folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        except OSError as error:
            raise UsageError(
                f"{clean(parent, 200)} cannot be written to: {error.strerror or error}"
            ) from error
        try:
            yield folder
        finally:
            with _no_interrupt():
                shutil.rmtree(folder, ignore_errors=True)


def _candidates(folders: Sequence[Path]) -> list[Path]:
    """On the data's file system first, the outermost of the folders around it last; then the usual
    one."""
    usual = Path(tempfile.gettempdir()).resolve()
    near = [
        usual,
        Path(platformdirs.user_cache_dir()).resolve(),
        Path.cwd().resolve(),
        *folders[0].parents,
    ]
    device = _device(folders[0])
    return [path for path in near if _device(path) == device] + [usual]


def _device(path: Path) -> int | None:
    try:
        return path.stat().st_dev
    except OSError:
        return None


def _writable(path: Path) -> bool:
    return (
        path.is_dir()
        and os.access(path, os.W_OK | os.X_OK)
        and not os.statvfs(path).f_flag & os.ST_RDONLY
    )


def _within(path: Path, folders: Sequence[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


@contextmanager
def _signals_unwind() -> Iterator[None]:
    """Signals that end a process end this block first. A handler that somebody else has set is left
    alone."""
    changed = []
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _leave)
                changed.append(number)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)  # as shells say it


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """A second Ctrl-C or SIGTERM must not leave half of the folder behind."""
    main = threading.current_thread() is threading.main_thread()
    previous = {}
    for number in (signal.SIGINT, signal.SIGTERM) if main else ():
        try:
            previous[number] = signal.signal(number, signal.SIG_IGN)
        except (ValueError, OSError):
            continue
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
