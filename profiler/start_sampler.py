"""Starting the system sampler: one a run and host, and nobody's child."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from .liveness import CREATE_TIME_TOLERANCE_S

OFF_VARIABLE = "LOADERSCOPE_SYSTEM"  # "0" starts no sampler
_PID_FILE = "sampler.pid"  # says who it is from its start until `sampler.json` does
_STARTING_S = 5.0
_NAMELESS_S = 0.3  # how long to wait for the id of a sampler that another process is starting


class Started(NamedTuple):
    """`pid` of the sampler of this run and host, None where it is not known; `reason` why there is none."""

    pid: int | None = None
    reason: str | None = None


def start_sampler(run_directory: Path) -> Started:
    """Start the system sampler for this run and host, unless one is at work or unwanted. Raises nothing."""
    if os.environ.get(OFF_VARIABLE) == "0":
        return Started(reason=f"the system sampler is switched off ({OFF_VARIABLE}=0)")
    try:
        directory, free = _system_directory(run_directory)
        if not free:
            return Started(_pid_in(directory))
        pid = _launch(run_directory, directory)
        if pid is not None:
            with suppress(OSError):
                (directory / _PID_FILE).write_text(str(pid))
        return Started(pid)
    except Exception as error:
        return Started(reason=f"the system sampler did not start: {type(error).__name__}: {error}")


def _system_directory(run_directory: Path) -> tuple[Path, bool]:
    """A folder made for a new sampler, and True; or that of this host's sampler that is running (or was begun a moment
    ago), and False."""
    host = "".join(c if c.isalnum() or c in "._-" else "_" for c in socket.gethostname()) or "host"
    number = 0
    while True:
        path = run_directory / f"system-{host}-{number}"
        try:
            path.mkdir(mode=0o700)
            return path, True
        except FileExistsError:
            if _sampler_lives(path):
                return path, False
            number += 1


def _pid_in(directory: Path) -> int | None:
    """The id of the sampler of this folder, which may have been begun this very moment by another process."""
    deadline = time.monotonic() + _NAMELESS_S
    while True:
        with suppress(OSError, ValueError, KeyError, TypeError):
            return int(json.loads((directory / "sampler.json").read_text(encoding="utf-8"))["pid"])
        with suppress(OSError, ValueError):
            return int((directory / _PID_FILE).read_text())
        if time.monotonic() > deadline:
            return None
        time.sleep(0.005)


def _sampler_lives(path: Path) -> bool:
    import psutil

    try:
        facts = json.loads((path / "sampler.json").read_text(encoding="utf-8"))
        if facts.get("ended_clock_ns") is not None:
            return False
        process = psutil.Process(int(facts["pid"]))
        off = abs(process.create_time() - float(facts["create_time"]))
        return off <= CREATE_TIME_TOLERANCE_S and process.status() != psutil.STATUS_ZOMBIE
    except FileNotFoundError:
        return time.time() - path.stat().st_mtime < _STARTING_S  # it is starting
    except (OSError, ValueError, KeyError, TypeError, psutil.Error):
        return False


_BOOT = (
    "import sys; sys.path[:] = {path!r}; from loaderscope.profiler.sampler.loop import main; sys.exit(main({argv!r}))"
)


# What a Python of ours must not inherit.
_LEFT_OUT = ("LOADERSCOPE_RUN", "PYTHONPATH", "PYTHONSTARTUP")


def _launch(run_directory: Path, directory: Path) -> int | None:
    """Start the sampler as nobody's child: no SIGCHLD and no exit status of it ever reaches the training code.

    Returns its process id, None where it cannot be told.
    """
    code = _BOOT.format(path=[os.path.abspath(p) for p in sys.path if p], argv=[str(run_directory), str(directory)])
    command = [sys.executable, "-S", "-c", code]
    environment = {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}
    quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if os.name == "posix":
        # The shell starts it in the background, where SIGINT is ignored, says its id, and is gone at once.
        shell = ["/bin/sh", "-c", '"$@" </dev/null >/dev/null 2>&1 & echo $!', "sh", *command]
        quiet["stdout"] = subprocess.PIPE
        said = subprocess.run(shell, env=environment, cwd="/", check=True, close_fds=True, **quiet).stdout
        return int(said) if said.strip().isdigit() else None
    else:
        flags = getattr(subprocess, "DETACHED_PROCESS", 0) | getattr(subprocess, "CREATE_NO_WINDOW", 0)
        return subprocess.Popen(command, env=environment, creationflags=flags, close_fds=True, **quiet).pid
