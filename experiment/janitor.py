"""Cleans up after a trial, however it ended: a process of its own, which lives until the trial's
process closes its end of a pipe or dies.

Run by its path, with the folder to remove. Lines on standard input name the first processes of
sides: `+PID` when started, `-PID` when ended.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

# They end by themselves once their processes have, and remove what those left in shared memory.
LAST = (b"multiprocessing.resource_tracker", b"torch_shm_manager")
GRACE_S = 3.0


def end_processes(first: int, waited_for: bool = False) -> None:
    """Kill a side: its first process, the session of that, and descendants. Once it was waited for,
    its id may be another's."""
    grace = time.monotonic() + GRACE_S
    known = set() if waited_for else {first}
    while True:
        known |= _of(known, known | {first})
        there = [pid for pid in known if _is_there(pid)]
        left = [pid for pid in there if time.monotonic() > grace or not _comes_last(pid)]
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not there:
            return
        for pid in there:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGCONT)  # those that come last may be stopped
        if time.monotonic() > grace + GRACE_S:
            return  # in the kernel, for good
        time.sleep(0.01)


def processes_of(first: int) -> set[int]:
    """The processes of a side: those of its session, and descendants that left it."""
    return _of({first}, {first})


def _of(known: set[int], sessions: set[int]) -> set[int]:
    facts = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            text = stat.read_text(errors="replace")
            state, parent, _, session, *_ = text[text.rindex(")") + 2 :].split()
            if state != "Z":
                facts[int(stat.parent.name)] = int(parent), int(session)
    found = {pid for pid, (_, session) in facts.items() if pid in known or session in sessions}
    grown = True
    while grown:
        more = {pid for pid, (parent, _) in facts.items() if parent in found} - found
        grown = bool(more)
        found |= more
    return found - {os.getpid()}


def _is_there(pid: int) -> bool:
    try:
        text = Path("/proc", str(pid), "stat").read_text(errors="replace")
    except OSError:
        return False
    return text[text.rindex(")") + 2] != "Z"


def _comes_last(pid: int) -> bool:
    with suppress(OSError):
        command = Path("/proc", str(pid), "cmdline").read_bytes()
        return any(each in command for each in LAST)
    return False


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
