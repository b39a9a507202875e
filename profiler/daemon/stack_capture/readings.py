"""When py-spy reads a process, and what that process's main thread does at that moment.

py-spy reads at irregular times and does not record them. But before each reading it lists the
threads (/proc/PID/task), of which inotify gives notice at once: the stack is read some tenths of a
millisecond after the state. So there is a state for each reading, in the same order, and each can
be paired with its stack: the first reading is py-spy's trial, readings that failed are logged with
their time, and one or two after the last are not written. Another process that lists the threads
meanwhile would shift the pairs by one.
"""

from __future__ import annotations

import ctypes
import os
import re
import select
import struct
import time
from calendar import timegm
from collections import Counter
from contextlib import suppress

from .thread_waits import Seen, ThreadWaits

IN_CLOSE_NOWRITE, IN_OPEN = 0x10, 0x20  # sys/inotify.h
_EVENT = struct.Struct("iIII")
_TRIALS = 1
# After the last sample: one reading that is thrown away, and those until py-spy has written.
_MOST_AFTER = 12
_FAILED = re.compile(
    r"^\[([\d-]+T[\d:]+)\.(\d{9})Z \w+ +py_spy\] Failed to get stack trace", re.MULTILINE
)
ENDS = "because process exited"
_RETRIED = "Failed to connect to process, retrying"
UNPAIRED = "the states of threads could not be paired with their stacks"
REFUSED = "what threads wait for may not be read here"


class Readings:
    """The readings of one burst. Nothing is watched after `close`. No method raises."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self._waits = ThreadWaits()
        self._watched: dict[int, int] = {}  # watch → process
        self._own = Counter[int]()  # listings that we ourselves have made
        self._seen: dict[int, list[tuple[int, Seen | None]]] = {}
        self._held: list[int] = []  # the kernel forgets a folder that nobody has open
        self._fd = -1
        try:
            self._libc = ctypes.CDLL(None, use_errno=True)
            self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, AttributeError):
            pass
        if self._fd < 0:
            self.reason = f"{REFUSED}: the kernel gives no notice of readings"

    def watch(self, pid: int) -> None:
        """Call it before py-spy begins with this process."""
        if self._fd >= 0:
            path = f"/proc/{pid}/task"
            with suppress(OSError):
                self._held.append(os.open(path, os.O_PATH | os.O_CLOEXEC))
            mask = IN_OPEN | IN_CLOSE_NOWRITE
            found = self._libc.inotify_add_watch(self._fd, path.encode(), mask)
            if found >= 0:
                self._watched[found] = pid
                self._waits.known.add(pid)
                self._seen.setdefault(pid, [])
            else:
                self.reason = f"{REFUSED}: {os.strerror(ctypes.get_errno())}"

    def wait(self, seconds: float) -> None:
        """Look at each process when it is read, for a time."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self._fd < 0 or not self._watched:
                time.sleep(left)
                return
            with suppress(OSError, ValueError):
                select.select([self._fd], [], [], left)
            self._take()

    def close(self) -> None:
        for fd in (self._fd, *self._held):
            with suppress(OSError):
                os.close(fd)
        self._fd, self._held = -1, []

    def pairs(self, pid: int, samples: int, said: str) -> list[Seen | None] | None:
        """What the main thread did at each of py-spy's samples of it; None where they cannot be
        paired. `said`: what py-spy logged."""
        self._take(too_late=True)
        seen = self._seen.get(pid, [])[_TRIALS:]
        for day, fraction in _FAILED.findall(said):
            at_ns = timegm(time.strptime(day, "%Y-%m-%dT%H:%M:%S")) * 1_000_000_000 + int(fraction)
            before = [place for place, (t_ns, _) in enumerate(seen) if t_ns <= at_ns]
            if before:
                del seen[before[-1]]
        # A thread that is seen twice in a reading, while others begin or end, makes more samples.
        fewest = samples + (ENDS not in said)
        if _RETRIED in said or not fewest <= len(seen) <= samples + _MOST_AFTER:
            self.reason = self.reason or UNPAIRED
            return None
        return [what for _, what in seen[:samples]]

    def _take(self, too_late: bool = False) -> None:
        """What the kernel has given notice of, until nothing is left."""
        while data := self._told():
            opened = Counter[int]()
            at = 0
            while at < len(data):
                watch, mask, _, length = _EVENT.unpack_from(data, at)
                at += _EVENT.size + length
                pid = self._watched.get(watch)
                if pid is not None and mask & IN_OPEN:
                    if self._own[pid]:
                        self._own[pid] -= 1
                    else:
                        opened[pid] += 1
            for pid, times in opened.items():
                # Of several at once, all but the last are over.
                now, seen = time.time_ns(), self._seen[pid]
                seen += [(now, None)] * (times - 1)
                seen.append((now, None if too_late else self._look(pid)))

    def _told(self) -> bytes:
        with suppress(OSError):
            return os.read(self._fd, 1 << 14)
        return b""

    def _look(self, pid: int) -> Seen | None:
        before = self._waits.listings
        try:
            return self._waits.look(pid)
        except PermissionError:
            self.reason = f"{REFUSED}: not permitted"
        except (OSError, ValueError, IndexError) as error:  # it has ended, or an odd kernel
            self.reason = self.reason or f"{REFUSED}: {type(error).__name__}"
        finally:
            self._own[pid] += self._waits.listings - before
        return None
