"""Surroundings that a process makes for itself before its program begins."""

from __future__ import annotations

import ctypes
import os
import pathlib
import resource
import sys
from typing import Any

CLONE_NEWNS, CLONE_NEWPID = 0x20000, 0x20000000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
PR_SET_CHILD_SUBREAPER = 36
NOBODY = 65534


def _call(name: str, *arguments: Any) -> None:
    """A function of the C library that returns 0. Raises OSError."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)


def _mount(kind: str, where: str, options: str = "") -> None:
    _call("mount", kind.encode(), where.encode(), kind.encode(), 0, options.encode() or None)


def _unshare(flags: int) -> None:
    """Namespaces of our own, mounts in which nobody else sees."""
    _call("unshare", flags)
    _call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)


def own_shared_memory() -> bool:
    """Mounts a /dev/shm that only this process and its children see; False where it may not."""
    try:
        _unshare(CLONE_NEWNS)
        _mount("tmpfs", "/dev/shm")
    except OSError:
        return False
    return True


def prepare(what: str, folder: str) -> str:
    """Makes these surroundings; returns why it cannot be done, "" where it was."""
    runs = os.path.join(folder, "runs")
    try:
        if what:
            _PREPARATIONS[what](runs)
    except OSError as error:
        return f"{what}: {error}"
    return ""


def _first_process(runs: str) -> None:
    """Goes on as process 1, as in a container; the process before stays outside and ends like it."""
    _unshare(CLONE_NEWPID | CLONE_NEWNS)
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        os._exit(128 - code if code < 0 else code)
    _mount("proc", "/proc")


def _subreaper(runs: str) -> None:
    _call("prctl", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _small_disk(options: str, where: str = "") -> object:
    def prepare(runs: str) -> None:
        _unshare(CLONE_NEWNS)
        os.makedirs(where or runs, exist_ok=True)
        _mount("tmpfs", where or runs, options)

    return prepare


def _for_all_to_read(path: str) -> None:
    """Where a folder above it is closed to others, as a root's home is, our mounts show it."""
    parents = reversed(pathlib.Path(path).parents)
    closed = next((each for each in parents if not each.stat().st_mode & 1), None)
    if closed is None:
        return
    inner = closed / pathlib.Path(path).relative_to(closed).parts[0]
    _unshare(CLONE_NEWNS)
    held = os.open(inner, os.O_PATH | os.O_DIRECTORY)  # reached by it once something is above
    try:
        _mount("tmpfs", str(closed), "mode=755")
        inner.mkdir()
        source = f"/proc/self/fd/{held}".encode()
        _call("mount", source, str(inner).encode(), None, MS_BIND | MS_REC, None)
    finally:
        os.close(held)


def _nobody(runs: str) -> None:
    _for_all_to_read(os.__file__)
    os.makedirs(runs, exist_ok=True)
    os.chown(runs, NOBODY, NOBODY)
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def _limit(which: int, most: int) -> object:
    def prepare(runs: str) -> None:
        resource.setrlimit(which, (most, most))

    return prepare


def _few_processes(runs: str) -> None:
    _nobody(runs)
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))


def _little_memory(runs: str) -> None:
    """64 MB of addresses more than there are."""
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + (64 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _lone_folder(runs: str) -> None:
    os.mkdir("gone")
    os.chdir("gone")
    os.rmdir("../gone")


_PREPARATIONS = {
    "first process": _first_process,
    "subreaper": _subreaper,
    "full disk": _small_disk("size=200k"),
    "no inodes": _small_disk("nr_inodes=8"),
    "small shm": _small_disk("size=1m", "/dev/shm"),
    "nobody": _nobody,
    "few descriptors": _limit(resource.RLIMIT_NOFILE, 24),
    "few processes": _few_processes,
    "little memory": _little_memory,
    "small files": _limit(resource.RLIMIT_FSIZE, 40_000),
    "no stderr": lambda runs: setattr(sys, "stderr", None),  # as under pythonw, and in daemons
    "no argv": lambda runs: delattr(sys, "argv"),
    "odd argv": lambda runs: sys.argv.__setitem__(slice(None), [b"x.py", "--name", "caf\udce9"]),
    "no folder": _lone_folder,
}
