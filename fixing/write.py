"""Writing a patch: only below the project's root, only files that are what the patch was made of,
each in one step."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path, PurePath

from ..profiler.base.errors import UsageError
from ..profiler.base.metadata import clean
from .edits import FileChange

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_changes(root: Path, changes: Sequence[FileChange]) -> None:
    """Replace each file in one step, or none: all are looked at, and their new texts written beside
    them, before the first is replaced.

    Folders on the way are opened one by one, without following links. Raises UsageError for a path
    that leaves the root, passes a link or is no plain file, and for a file that is not what the
    change was made of.
    """
    with ExitStack() as stack:
        ready = [(change, *_prepared(stack, root, change)) for change in changes]
        for change, folder, name, _ in ready:
            _check(folder, name, change)
        for _, folder, name, new in ready:
            os.replace(new, name, src_dir_fd=folder, dst_dir_fd=folder)


def _prepared(stack: ExitStack, root: Path, change: FileChange) -> tuple[int, str, str]:
    """(the file's folder, its name, the name of the new text beside it), until the stack ends."""
    shown, path = clean(change.path, 200), PurePath(change.path)
    if not path.parts or path.is_absolute() or ".." in path.parts:
        raise UsageError(f"{shown} lies outside of the project: nothing was written")
    try:
        folder = os.open(root.resolve(), _FOLDER)
        stack.callback(os.close, folder)
        for part in path.parts[:-1]:
            folder = os.open(part, _FOLDER, dir_fd=folder)
            stack.callback(os.close, folder)
        mode = _check(folder, path.name, change)
        new = f".{path.name}.{os.getpid()}.new"
        with os.fdopen(os.open(new, _NEW, mode, dir_fd=folder), "wb") as file:
            stack.callback(_remove, new, folder)
            os.fchmod(file.fileno(), mode)
            file.write(change.after)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise UsageError(
            f"{shown} cannot be written: {error.strerror}; nothing was written"
        ) from error
    return folder, path.name, new


def _check(folder: int, name: str, change: FileChange) -> int:
    """The mode of a file that is still what the change was made of. Raises UsageError."""
    shown = clean(change.path, 200)
    try:
        fd = os.open(name, _FILE, dir_fd=folder)
    except OSError as error:
        raise UsageError(
            f"{shown} is no plain file ({error.strerror}): nothing was written"
        ) from error
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise UsageError(f"{shown} is no plain file: nothing was written")
        if file.read(len(change.before) + 1) != change.before:
            raise UsageError(f"{shown} was changed meanwhile: nothing was written")
    return stat.S_IMODE(status.st_mode)


def _remove(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
