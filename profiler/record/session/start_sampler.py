"""Starting the system sampler: one a run and host, and nobody's child."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ...base.host import host_name
from ...base.liveness import CREATE_TIME_TOLERANCE_S
from ...store.lanes.block import SOCKET_NAME
from ...store.rundir import system_stem

OFF_VARIABLE = "LOADERSCOPE_SYSTEM"  # "0" starts no sampler
_PID_FILE = "sampler.pid"  # says who it is from its start until `sampler.json` does
_STARTING_S = 5.0
_KEPT_FD = 3  # what `_spawn` makes of the descriptor it is given
_NAMELESS_S = 0.3  # how long to wait for the id of a sampler that another process is starting


class Started(NamedTuple):
    """`pid` of the sampler of this run and host, None where it is not known; `reason` why there is
    none; `keeper`: its folder, where it keeps the memory of processes that record."""

    pid: int | None = None
    reason: str | None = None
    keeper: Path | None = None


def start_sampler(run_directory: Path) -> Started:
    """Start the system sampler for this run and host, unless one is at work or unwanted. Raises
    nothing."""
    if os.environ.get(OFF_VARIABLE) == "0":
        return Started(reason=f"the system sampler is switched off ({OFF_VARIABLE}=0)")
    try:
        directory, free = _system_directory(run_directory)
        if not free:
            return Started(
                _pid_in(directory), keeper=directory if (directory / SOCKET_NAME).exists() else None
            )
        pid, keeps = _launch(run_directory, directory)
        if pid is not None:
            with suppress(OSError):
                (directory / _PID_FILE).write_text(str(pid))
        return Started(pid, keeper=directory if keeps else None)
    except Exception as error:
        return Started(reason=f"the system sampler did not start: {type(error).__name__}: {error}")


def _system_directory(run_directory: Path) -> tuple[Path, bool]:
    """A folder made for a new sampler, and True; or that of this host's sampler that is running (or
    was begun a moment ago), and False."""
    stem = system_stem(host_name())
    number = 0
    while True:
        path = run_directory / f"{stem}-{number}"
        try:
            path.mkdir(mode=0o700)
            return path, True
        except FileExistsError:
            if _sampler_lives(path):
                return path, False
            number += 1


def _pid_in(directory: Path) -> int | None:
    """The id of the sampler of this folder, which may have been begun this very moment by another
    process."""
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
    "import sys; sys.path[:] = {path!r}; from loaderscope.profiler.daemon.loop import main; "
    "sys.exit(main({argv!r}))"
)


# What a Python of ours must not inherit.
_LEFT_OUT = ("LOADERSCOPE_RUN", "PYTHONPATH", "PYTHONSTARTUP")


def why_not_kept() -> str:
    """Why no sampler can keep what this process records, so that each batch is written by system
    calls; "": it can."""
    if not hasattr(os, "memfd_create"):
        return "this platform has no sealed memory"
    try:
        from ...native._spawn import spawn  # noqa: F401
    except ImportError as error:
        return f"the extension that starts the sampler is not there ({error})"
    return ""


def _launch(run_directory: Path, directory: Path) -> tuple[int | None, bool]:
    """Start the sampler as nobody's child: nothing of it ever reaches the training code.

    Returns its process id, None where it cannot be told, and whether it keeps the memory of
    processes that ask.
    """
    if not sys.executable:
        raise OSError(errno.ENOENT, "this process does not know its own Python")
    listening = _keeper_socket(directory)
    try:
        if sys.platform == "linux":
            from ...native._spawn import adopts_orphans, spawn

            argv = _command(run_directory, directory, None if listening is None else _KEPT_FD)
            environment = tuple(
                os.fsencode(f"{name}={value}") for name, value in _environment().items()
            )
            fd = -1 if listening is None else listening.fileno()
            command = tuple(map(os.fsencode, argv))
            return spawn(command, environment, fd, adopts_orphans()), listening is not None
    except (
        ImportError,
        AttributeError,
    ):  # no C compiler when this was installed, or another processor
        pass
    finally:
        if listening is not None:
            listening.close()
    with suppress(OSError):
        os.unlink(directory / SOCKET_NAME)
    return _launch_plainly(_command(run_directory, directory, None)), False


def _launch_plainly(command: list[str]) -> int | None:
    """By means of Python alone. A shell that starts it in the background is this process's child
    for a moment; where somebody waits for such, no sampler is started."""
    quiet: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    environment = _environment()
    if os.name == "posix":
        if (
            signal.getsignal(signal.SIGCHLD) not in (signal.SIG_DFL, signal.SIG_IGN)
            or os.getpid() == 1
        ):
            raise OSError(
                errno.ECHILD,
                "it would be seen as a child of the training: a C compiler was not there",
            )
        # The shell starts it where SIGINT is ignored, says its id, and is gone at once.
        shell = ["/bin/sh", "-c", '"$@" </dev/null >/dev/null 2>&1 & echo $!', "sh", *command]
        quiet["stdout"] = subprocess.PIPE
        said = subprocess.run(
            shell, env=environment, cwd="/", check=True, close_fds=True, **quiet
        ).stdout
        return int(said) if said.strip().isdigit() else None
    flags = getattr(subprocess, "DETACHED_PROCESS", 0) | getattr(subprocess, "CREATE_NO_WINDOW", 0)
    return subprocess.Popen(
        command, env=environment, creationflags=flags, close_fds=True, **quiet
    ).pid


def _command(run_directory: Path, directory: Path, keeper_fd: int | None) -> list[str]:
    argv = [str(run_directory), str(directory)]
    if keeper_fd is not None:
        argv += ["--keeper", str(keeper_fd)]
    code = _BOOT.format(path=[os.path.abspath(p) for p in sys.path if p], argv=argv)
    return [sys.executable, "-S", "-c", code]


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}


def _keeper_socket(directory: Path) -> socket.socket | None:
    """Where processes hand their memory to the sampler; made here, so that it is there before the
    sampler is.

    None where there is no such thing: each record is then written to its file at once.
    """
    if not hasattr(os, "memfd_create"):
        return None
    made = None
    try:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            made.bind(f"/proc/self/fd/{folder}/{SOCKET_NAME}")
        finally:
            os.close(folder)
    except OSError:  # a file system without sockets
        if made is not None:
            made.close()
        return None
    return made
