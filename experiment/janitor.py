"""Cleans up after a trial. A separate process, which lives until the trial's process closes its end
of a pipe or dies.

It is run as a module with the folder to remove. Lines on standard input name the first process of a
side: `+PID` when it has started, `-PID` when it has ended.
"""

import os
import shutil
import signal
import sys
import time
from collections.abc import Collection
from contextlib import suppress

import psutil

# They end after their processes, and remove what those left in shared memory.
LAST = ("multiprocessing.resource_tracker", "torch_shm_manager")
GRACE_S = 3.0


def processes_of(
    first: int, known: Collection[psutil.Process] = frozenset()
) -> set[psutil.Process]:
    """The living processes of a side: the session of its first process, those in `known`, and their
    descendants in other sessions."""
    parents, found = {}, set()
    for process in psutil.process_iter(["ppid", "status"]):
        if process.info["status"] == psutil.STATUS_ZOMBIE:
            continue
        parents[process] = process.info["ppid"]
        with suppress(OSError):
            if process in known or os.getsid(process.pid) == first:
                found.add(process)
    pids = {process.pid for process in found}
    while more := {each for each, parent in parents.items() if parent in pids} - found:
        found |= more
        pids |= {process.pid for process in more}
    return {process for process in found if process.pid != os.getpid()}


def end_processes(first: int) -> None:
    """Kill all processes of a side."""
    grace = time.monotonic() + GRACE_S
    known: set[psutil.Process] = set()
    while known := processes_of(first, known):
        for process in known:
            with suppress(psutil.Error):
                last = time.monotonic() < grace and any(
                    name in part for part in process.cmdline() for name in LAST
                )
                process.send_signal(signal.SIGCONT if last else signal.SIGKILL)
        if time.monotonic() > grace + GRACE_S:
            return  # stuck in the kernel
        time.sleep(0.01)


def main(folder: str) -> None:
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    sides: set[int] = set()
    for line in sys.stdin:
        change = sides.add if line.startswith("+") else sides.discard
        change(int(line[1:]))
    for first in sides:
        end_processes(first)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1])
