"""A command on a screen of its own, which a key ends."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any


def in_a_terminal(
    command: Sequence[str | Path],
    expected: str,
    cwd: Path,
    env: Mapping[str, str],
    patience_s: float = 300,
) -> tuple[int, str]:
    """Run it until its screen shows what is expected, and press q until it ends; (exit code, all
    that it wrote)."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
    streams: Any = dict.fromkeys(("stdin", "stdout", "stderr"), follower)
    process = subprocess.Popen(command, cwd=cwd, env=env, start_new_session=True, **streams)
    os.close(follower)
    seen, deadline, pressed = b"", time.monotonic() + patience_s, 0.0
    while process.poll() is None and time.monotonic() < deadline:
        if select.select([leader], [], [], 0.2)[0]:
            with suppress(OSError):  # the other side is closed
                seen += os.read(leader, 65536)
        if re.search(expected, seen.decode(errors="replace")) and time.monotonic() > pressed + 2:
            pressed = time.monotonic()
            os.write(leader, b"q")
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    os.close(leader)
    return process.wait(), seen.decode(errors="replace")
