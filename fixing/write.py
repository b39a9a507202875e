"""Writing a patch: only below the project's root, only files that are what the patch was made of,
each in one step."""

import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import NamedTemporaryFile

from ..profiler.base.errors import UsageError
from ..profiler.base.metadata import clean
from .edits import FileChange


def write_changes(root: Path, changes: Sequence[FileChange]) -> None:
    """Replace each file in one step, or none: all are looked at, and their new texts written beside
    them, before the first is replaced.

    Raises UsageError for a path that leaves the root, passes a link or is no plain file, and for a
    file that is not what the change was made of.
    """
    with ExitStack() as stack:
        ready = [(_prepared(stack, root.resolve(), change), change.path) for change in changes]
        for new, path in ready:
            new.replace(root / path)


def _prepared(stack: ExitStack, root: Path, change: FileChange) -> Path:
    """The file's new text beside it, until the stack ends."""
    shown, path = clean(change.path, 200), root / change.path
    try:
        # Of a path with `..` or a link in it, what it leads to is another.
        if path.resolve() != path or not path.is_relative_to(root) or not path.is_file():
            raise UsageError(f"{shown} is no plain file of the project: nothing was written")
        if path.read_bytes() != change.before:
            raise UsageError(f"{shown} was changed meanwhile: nothing was written")
        with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            new = Path(file.name)
            stack.callback(new.unlink, missing_ok=True)
            shutil.copymode(path, new)
            file.write(change.after)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise UsageError(
            f"{shown} cannot be written: {error.strerror}; nothing was written"
        ) from error
    return new
