"""Files that readers see whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def write_atomically(path: Path, text: str, mode: int = 0o600) -> None:
    """Replace `path` in one step: a reader sees the old text or the new one. `mode` says who may
    read it. A failure leaves the old text alone."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(text.encode())
        os.replace(temporary, path)
    except OSError:  # a full disk, say, or what a signal's handler raises once it is replaced
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
