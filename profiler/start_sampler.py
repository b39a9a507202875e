"""Starting the system sampler: one a run and host, and nobody's child."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from .liveness import CREATE_TIME_TOLERANCE_S

OFF_VARIABLE = "LOADERSCOPE_SYSTEM"  # "0" starts no sampler


def start_sampler(run_directory: Path) -> str | None:
    """Start the system sampler for this run and host, unless one is at work or unwanted.

    Returns why it could not be started, None if all is well. Raises nothing.
    """
    if os.environ.get(OFF_VARIABLE) == "0":
        return f"the system sampler is switched off ({OFF_VARIABLE}=0)"
    try:
        directory = _free_system_directory(run_directory)
        if directory is not None:
            _launch(run_directory, directory)
    except Exception as error:
        return f"the system sampler did not start: {type(error).__name__}: {error}"
    return None


def _free_system_directory(run_directory: Path) -> Path | None:
    """A folder made for a new sampler; None if this host's sampler is running (or was begun a moment ago)."""
    host = "".join(c if c.isalnum() or c in "._-" else "_" for c in socket.gethostname()) or "host"
    number = 0
    while True:
        path = run_directory / f"system-{host}-{number}"
        try:
            path.mkdir(mode=0o700)
            return path
        except FileExistsError:
            if _sampler_lives(path):
                return None
            number += 1


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
        return time.time() - path.stat().st_mtime < 5.0  # it is starting
    except (OSError, ValueError, KeyError, TypeError, psutil.Error):
        return False


_BOOT = (
    "import sys; sys.path[:] = {path!r}; from loaderscope.profiler.sampler.loop import main; sys.exit(main({argv!r}))"
)


# What a Python of ours must not inherit.
_LEFT_OUT = ("LOADERSCOPE_RUN", "PYTHONPATH", "PYTHONSTARTUP")


def _launch(run_directory: Path, directory: Path) -> None:
    """Start the sampler as nobody's child: no SIGCHLD and no exit status of it ever reaches the training code."""
    code = _BOOT.format(path=[os.path.abspath(p) for p in sys.path if p], argv=[str(run_directory), str(directory)])
    command = [sys.executable, "-S", "-c", code]
    environment = {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}
    quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if os.name == "posix":
        # The shell starts it in the background, where SIGINT is ignored, and is gone at once.
        shell = ["/bin/sh", "-c", '"$@" </dev/null >/dev/null 2>&1 &', "sh", *command]
        subprocess.run(shell, env=environment, cwd="/", check=True, close_fds=True, **quiet)
    else:
        flags = getattr(subprocess, "DETACHED_PROCESS", 0) | getattr(subprocess, "CREATE_NO_WINDOW", 0)
        subprocess.Popen(command, env=environment, creationflags=flags, close_fds=True, **quiet)
