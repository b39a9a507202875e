"""Starts the system sampler: one per run and host, and nobody's child."""

from __future__ import annotations

import errno
import itertools
import os
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ...base.errors import RunUnreadable
from ...base.facts import EndedProcess
from ...base.host import host_name
from ...base.liveness import Liveness, process_state
from ...base.tolerant import read_as
from ...store.lanes.block import SOCKET_NAME
from ...store.rundir import system_stem

OFF_VARIABLE = "LOADERSCOPE_SYSTEM"  # "0" starts no sampler
_PID_FILE = "sampler.pid"  # names the sampler until `sampler.json` does
_STARTING_S = 5.0
_KEPT_FD = 3  # what `_spawn` makes of the descriptor it is given
_NAMELESS_S = 0.3  # how long to wait for the id of a sampler that another process is starting


class Started(NamedTuple):
    """`pid` of the sampler of this run and host, None if unknown. `reason` says why there is none.
    `keeper` is its folder if it keeps the memory of recording processes."""

    pid: int | None = None
    reason: str | None = None
    keeper: Path | None = None


def start_sampler(run_directory: Path) -> Started:
    """Start the system sampler for this run and host, unless one runs or is unwanted. Raises
    nothing."""
    if os.environ.get(OFF_VARIABLE) == "0":
        return Started(reason=f"the system sampler is switched off ({OFF_VARIABLE}=0)")
    try:
        directory, free = _system_directory(run_directory)
        if not free:
            return Started(
                _pid_in(directory), keeper=directory if (directory / SOCKET_NAME).exists() else None
            )
        started = _launch(run_directory, directory)
        if started.pid is not None:
            with suppress(OSError):
                (directory / _PID_FILE).write_text(str(started.pid))
        return started
    except Exception as error:
        return Started(reason=f"the system sampler did not start: {type(error).__name__}: {error}")


def _system_directory(run_directory: Path) -> tuple[Path, bool]:
    """(a new folder for a sampler, True), or (that of this host's running sampler, False)."""
    for number in itertools.count():
        path = run_directory / f"{system_stem(host_name())}-{number}"
        try:
            path.mkdir(mode=0o700)
            return path, True
        except FileExistsError:
            if _sampler_lives(path):
                return path, False
    raise AssertionError


def _facts(directory: Path) -> EndedProcess:
    return read_as(EndedProcess, directory / "sampler.json")


def _pid_in(directory: Path) -> int | None:
    """The id of this folder's sampler, which another process may just be starting."""
    deadline = time.monotonic() + _NAMELESS_S
    while time.monotonic() < deadline:
        with suppress(RunUnreadable):
            return _facts(directory).pid
        with suppress(OSError, ValueError):
            return int((directory / _PID_FILE).read_text())
        time.sleep(0.005)
    return None


def _sampler_lives(path: Path) -> bool:
    try:
        return process_state(_facts(path), Liveness()) == "live"
    except RunUnreadable as error:
        starts = isinstance(error.__cause__, FileNotFoundError)
        return starts and time.time() - path.stat().st_mtime < _STARTING_S


_BOOT = (
    "import sys; sys.path[:] = {path!r}; from loaderscope.profiler.daemon.loop import main; "
    "sys.exit(main({argv!r}))"
)


# Variables that a Python of ours must not inherit.
_LEFT_OUT = ("LOADERSCOPE_RUN", "PYTHONPATH", "PYTHONSTARTUP")


def why_not_kept() -> str:
    """Why no sampler can keep this process's records, so that each batch costs system calls. "" if
    one can."""
    if not hasattr(os, "memfd_create"):
        return "this platform has no sealed memory"
    try:
        from ...native._spawn import spawn  # noqa: F401
    except ImportError as error:
        return f"the extension that starts the sampler is not there ({error})"
    return ""


def _launch(run_directory: Path, directory: Path) -> Started:
    """Start the sampler as nobody's child, so that the training code never sees it."""
    if not sys.executable:
        raise OSError(errno.ENOENT, "this process does not know its own Python")
    try:
        from ...native._spawn import adopts_orphans, spawn
    except ImportError as error:
        raise OSError(errno.ENOSYS, "no C compiler at installation") from error
    listening = _keeper_socket(directory)
    try:
        argv = [str(run_directory), str(directory)]
        if listening is not None:
            argv += ["--keeper", str(_KEPT_FD)]
        code = _BOOT.format(path=[os.path.abspath(p) for p in sys.path if p], argv=argv)
        command = tuple(map(os.fsencode, (sys.executable, "-S", "-c", code)))
        variables = tuple(
            os.fsencode(f"{name}={value}")
            for name, value in os.environ.items()
            if name not in _LEFT_OUT
        )
        fd = -1 if listening is None else listening.fileno()
        pid = spawn(command, variables, fd, adopts_orphans())
        return Started(pid, keeper=directory if listening is not None else None)
    finally:
        if listening is not None:
            listening.close()


def _keeper_socket(directory: Path) -> socket.socket | None:
    """The socket by which processes hand their memory to the sampler, made before the sampler is.

    None where there can be none: each record is then written to its file at once.
    """
    if not hasattr(os, "memfd_create"):
        return None
    made = None
    with suppress(OSError):  # a file system without sockets
        made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            made.bind(f"/proc/self/fd/{folder}/{SOCKET_NAME}")
            return made
        finally:
            os.close(folder)
    if made is not None:
        made.close()
    return None
