"""The temporary folder of a trial, which no way of ending it leaves behind."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from . import janitor

PREFIX = "loaderscope-try-"
LOCK = "lock"


class Scratch:
    """A folder, removed with the processes of sides when this ends or its process dies. Folders
    whose trial and janitor were both killed are removed by the next trial. Raises OSError."""

    def __enter__(self) -> Scratch:
        _sweep(Path(tempfile.gettempdir()))
        self.folder = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
        # Inherited by the janitor, and held as long as one of the two lives.
        new = self.folder / "new"
        self._lock = os.open(new, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        new.rename(self.folder / LOCK)  # a lock that has its name is held
        command = [sys.executable, "-I", "-S", janitor.__file__, str(self.folder)]
        self._janitor = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            pass_fds=(self._lock,),
        )
        return self

    def began(self, pid: int) -> None:
        """A side's first process has started."""
        self._tell(f"+{pid}")

    def ended(self, pid: int) -> None:
        """And is gone."""
        self._tell(f"-{pid}")

    def _tell(self, line: str) -> None:
        assert self._janitor.stdin is not None
        with suppress(OSError):
            self._janitor.stdin.write(line + "\n")
            self._janitor.stdin.flush()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._janitor.stdin is not None
        with suppress(OSError):
            self._janitor.stdin.close()
        self._janitor.wait()
        os.close(self._lock)


def _sweep(where: Path) -> None:
    """Remove folders of this user's that no trial holds any more."""
    for folder in where.glob(PREFIX + "*"):
        with suppress(OSError):
            if folder.lstat().st_uid != os.getuid() or folder.is_symlink():
                continue
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
