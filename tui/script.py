"""A script in a terminal of its own."""

import fcntl
import os
import pty
import shutil
import struct
import subprocess
import termios
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ..profiler.base.errors import UsageError
from ..profiler.launch import environment, recorded

READ_BYTES = 1 << 16


class Script:
    """`command`, recorded into `directory` and shown as `argv`, starts at once. When its terminal
    goes (this process ends), the kernel sends it SIGHUP, as for any terminal.

    Raises UsageError where it cannot be started.
    """

    def __init__(
        self, command: list[str], directory: Path, argv: Sequence[str], rows: int, columns: int
    ) -> None:
        self.directory = directory
        self.argv = tuple(argv)
        self._master, slave = pty.openpty()
        self.resize(rows, columns)
        env = {"TERM": "xterm-256color", **environment(self.directory, os.environ)}
        for name in ("COLUMNS", "LINES"):
            env.pop(name, None)  # they are those of the dashboard, not of the pane
        try:
            self._process = subprocess.Popen(
                command,
                stdin=slave,
                stdout=slave,
                stderr=slave,
                env=env,
                start_new_session=True,
                preexec_fn=_own_terminal,  # noqa: PLW1509 (no thread runs yet)
            )
        except OSError as error:
            os.close(self._master)
            shutil.rmtree(self.directory, ignore_errors=True)
            raise UsageError(f"{command[0]} cannot be started: {error.strerror}") from error
        finally:
            os.close(slave)

    def read(self) -> bytes:
        """What it wrote; empty once it and all that share its terminal have ended."""
        try:
            return os.read(self._master, READ_BYTES)
        except OSError:  # EIO: the other end is closed
            return b""

    def resize(self, rows: int, columns: int) -> None:
        """Its terminal's size."""
        with suppress(OSError):
            fcntl.ioctl(
                self._master,
                termios.TIOCSWINSZ,
                struct.pack("HHHH", max(1, rows), max(1, columns), 0, 0),
            )

    def interrupt(self) -> None:
        """Ctrl-C, typed into its terminal."""
        with suppress(OSError):
            os.write(self._master, b"\x03")

    @property
    def code(self) -> int | None:
        """Its exit code (negative: the signal it died of), None while it runs."""
        return self._process.poll()

    def wait(self) -> int:
        """Waits for its end."""
        return self._process.wait()

    def recorded(self) -> Path | None:
        """Its run directory; None, and no directory, if it recorded nothing."""
        return recorded(self.directory)


def _own_terminal() -> None:
    """In the child: the pty becomes its controlling terminal, so that Ctrl-C and SIGHUP reach its
    whole group."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
