"""What a thread does at a moment: it computes, or waits for something that has a name.

The source is /proc, with the permission that py-spy has (PTRACE_MODE_ATTACH): `syscall` has the
system call that blocks a thread and its arguments, `fd` what a descriptor is, `mem` the descriptors
of a poll, `maps` the file that a futex lies in, and `wchan` where the kernel waits (proc(5)). Call
numbers are known for x86-64 and AArch64; other machines use `wchan` alone. A child or a server of
this host that is waited for computes, or waits itself.
"""

from __future__ import annotations

import os
import re
import struct
from collections import Counter, defaultdict
from contextlib import suppress
from typing import NamedTuple

from ..procfs import read, read_all
from .peers import Peer, children, peer_of

# By role: the numbers on x86-64, and on AArch64. Of every other call, the first argument is taken
# for a descriptor if the process has one of that number.
_CALLS = {
    "path": (
        "2 4 6 21 82 83 87 89 137 257 262 263 269 316 332 437",
        "34 35 43 48 56 78 79 276 291 437",
    ),
    "poll": ("7 271", "73"),
    "select": ("23 270", "72"),
    "epoll": ("232 281 441", "22 441"),
    "futex": ("202", "98"),
    "file lock": ("72 73", "25 32"),
    "semaphore": ("65 220", "192 193"),
    "sleep": ("34 35 230", "101 115"),
    "child": ("56 58 61 247 435", "95 220 260 435"),
    "requests": ("208 333 426", "4 292 426"),
    "memory": ("9 10 11 12 25 26 28", "214 215 216 222 226 227 233"),
}
_MACHINES = ("x86_64", "aarch64")
_WAITID = (95, 247)  # whose second argument is the child
FUTEX_PRIVATE = 128  # linux/futex.h
MOST_POLLED = 16
MISSES = 3
MOST_THREADS = 32
MAX_WHAT = 200
_KERNEL_LOCKS = (b"rwsem", b"mutex", b"down_", b"schedule_preempt_disabled", b"locks_lock")
_SLEEPS = (b"nanosleep", b"sigtimedwait")
_PYTHON = re.compile(rb"(?:.*/)?(?:python[0-9.]*[td]*|libpython[0-9].*)")
# Of several threads that a process waits for, the first of these that one of them does is given.
_GETS_ON = ("threads", "child", "server", "disk", "network", "child waits", "server waits", "sleep")


class Seen(NamedTuple):
    """`kind` is one of `WAITS`, `what` its file, peer or child. `key` names a lock that several
    processes may wait for: the file system, the file and the place in it that it lies at."""

    kind: str
    what: str = ""
    key: tuple[str, int] | None = None


UNKNOWN, COMPUTES = Seen("unknown"), Seen("compute")


class ThreadWaits:
    """Of the processes of one burst. What does not change while it is taken is remembered."""

    def __init__(self, machine: str = os.uname().machine) -> None:
        self._roles = {
            int(number): role
            for role, columns in _CALLS.items()
            for number in dict(zip(_MACHINES, columns, strict=True)).get(machine, "").split()
        }
        self.known: set[int] = set()  # processes of the burst, which are looked at themselves
        self._peers: dict[tuple[int, str], Peer] = {}
        self._missed: Counter[tuple[int, str]] = Counter()
        self._locks: dict[tuple[int, int], Seen] = {}
        self._interpreter: dict[int, list[tuple[int, int]]] = {}
        self._delays: dict[int, tuple[int, int]] = {}
        self._owed: dict[int, float] = defaultdict(float)
        self.listings = 0  # of the threads of a process, that it has made itself

    def look(self, pid: int) -> Seen:
        """What the main thread of this process does now. Raises OSError where it may not be
        read."""
        call = read(f"/proc/{pid}/syscall")
        if call.startswith(b"running"):
            return self._core(pid)
        found = self._blocked(pid, pid, call)
        return self._others(pid) if found.key == _OWN else found

    def _core(self, pid: int) -> Seen:
        """Computing, or ready to compute without a core: in the proportion in which the kernel
        counted both since the last look (schedstat)."""
        used, delayed = map(int, read(f"/proc/{pid}/schedstat").split()[:2])
        before = self._delays.get(pid, (used, delayed))
        self._delays[pid] = used, delayed
        ran, waited = max(0, used - before[0]), max(0, delayed - before[1])
        self._owed[pid] += waited / max(1, ran + waited)
        if self._owed[pid] < 1.0:
            return COMPUTES
        self._owed[pid] -= 1.0
        return Seen("core")

    def _blocked(self, pid: int, tid: int, call: bytes) -> Seen:
        parts = call.split()
        number = int(parts[0])
        a, b = int(parts[1], 16), int(parts[2], 16)
        if number < 0:  # in no system call: a page of memory has to be brought
            return Seen("fault") if a else UNKNOWN  # or it has ended
        role = self._roles.get(number)
        if role == "futex":
            return self._futex(pid, a, b)
        if role in ("poll", "select", "epoll"):
            return self._polled(pid, role, a, b)
        if role == "file lock":
            file = self._descriptor(pid, a).what
            return Seen("lock", file, (file, 0) if file else None)
        if role == "child":
            known = [b] if number in _WAITID else [a] if 0 < a < 1 << 31 else children(pid)
            return Seen("child" if any(map(_computes, known or [pid])) else "child waits")
        at = b""
        with suppress(OSError):
            at = read(f"/proc/{pid}/task/{tid}/wchan")
        if any(name in at for name in _SLEEPS):
            return Seen("sleep")
        found = _PLAIN.get(role or "")
        if found is None:
            found = self._descriptor(pid, a) if self._roles else UNKNOWN
        # A file that another process holds in the kernel is a lock.
        if found.kind == "disk" and any(name in at for name in _KERNEL_LOCKS):
            return Seen("lock", found.what or "in the kernel")
        return found

    def _futex(self, pid: int, address: int, operation: int) -> Seen:
        """The interpreter's own lock, one that processes share, or one of this process's threads
        (its key is then _OWN)."""
        if operation & FUTEX_PRIVATE:
            if pid not in self._interpreter:
                self._interpreter[pid] = _interpreter(read_all(f"/proc/{pid}/maps"))
            own = any(start <= address < end for start, end in self._interpreter[pid])
            return Seen("gil") if own else _THREADS
        if (pid, address) not in self._locks:
            self._locks[pid, address] = _shared(read_all(f"/proc/{pid}/maps"), address)
        return self._locks[pid, address]

    def _others(self, pid: int) -> Seen:
        """What another thread does, where the main thread waits for others of its process."""
        found: dict[str, Seen] = {}
        self.listings += 1
        for tid in os.listdir(f"/proc/{pid}/task")[:MOST_THREADS]:
            if int(tid) != pid:
                with suppress(OSError, ValueError, IndexError):
                    call = read(f"/proc/{pid}/task/{tid}/syscall")
                    running = call.startswith(b"running")
                    seen = Seen("threads") if running else self._blocked(pid, int(tid), call)
                    found.setdefault(seen.kind, seen)
        return next((found[kind] for kind in _GETS_ON if kind in found), Seen("lock"))

    def _polled(self, pid: int, role: str, a: int, b: int) -> Seen:
        """The first of the descriptors waited for that is known; a sleep where there are none."""
        if role == "epoll":
            told = read(f"/proc/{pid}/fdinfo/{a}")
            numbers = [int(each) for each in re.findall(rb"^tfd:\s*(\d+)", told, re.MULTILINE)]
        else:
            address, many = (a, b) if role == "poll" else (b, a)
            if many == 0:
                return Seen("sleep")
            data = b""
            if address:
                with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
                    memory.seek(address)
                    size = 8 * min(many, MOST_POLLED) if role == "poll" else (many + 7) // 8
                    data = memory.read(min(size, 128))
            if role == "poll":
                numbers = [each[0] for each in struct.iter_unpack("<ihh", data)]
            else:
                numbers = [at for at in range(8 * len(data)) if data[at // 8] >> at % 8 & 1]
        found = (self._descriptor(pid, number) for number in numbers[:MOST_POLLED])
        return next((each for each in found if each != UNKNOWN), UNKNOWN)

    def _descriptor(self, pid: int, number: int) -> Seen:
        try:
            target = os.readlink(f"/proc/{pid}/fd/{number}")
        except FileNotFoundError:  # closed meanwhile, or not a descriptor
            return UNKNOWN
        if target.startswith(("socket:", "pipe:")):
            peer = self._peers.get((pid, target))
            if peer is None:
                peer = peer_of(pid, number, target)
                self._missed[pid, target] += peer.pid is None
                # A server may not have accepted yet, a child may not have begun.
                if peer.pid is not None or self._missed[pid, target] >= MISSES:
                    self._peers[pid, target] = peer
            if peer.pid in self.known:
                return Seen("pipe")
            waits = peer.pid is not None and not _computes(peer.pid)
            return Seen(f"{peer.kind} waits" if waits else peer.kind, peer.what[:MAX_WHAT])
        if target.startswith("/dev/") and not target.startswith("/dev/shm/"):
            return Seen("device", target[:MAX_WHAT])
        return Seen("disk", target[:MAX_WHAT]) if target.startswith("/") else UNKNOWN


_OWN = ("", 0)
_THREADS = Seen("lock", "", _OWN)
_PLAIN = {
    "path": Seen("disk"),
    "requests": Seen("disk"),
    "semaphore": Seen("lock"),
    "sleep": Seen("sleep"),
    "memory": Seen("fault"),
}


def _computes(pid: int) -> bool:
    """Whether a thread of this process runs, or is ready to. One that begins or ends does."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")[:MOST_THREADS]
        states = (read(f"/proc/{pid}/task/{tid}/stat").rpartition(b")")[2] for tid in threads)
        return any(state.split(None, 1)[0] in (b"R", b"Z") for state in states)
    except (OSError, IndexError):
        return True


def _mappings(maps: bytes) -> list[tuple[int, int, list[bytes]]]:
    """(start, end, fields) of each line of /proc/PID/maps."""
    found = []
    for line in maps.splitlines():
        fields = line.split(None, 5)
        start, _, end = fields[0].partition(b"-")
        found.append((int(start, 16), int(end, 16), fields))
    return found


def _interpreter(maps: bytes) -> list[tuple[int, int]]:
    """Where the interpreter's variables lie, of which its lock is one: what may be written of its
    file, and what follows at once."""
    found, behind = [], -1
    for start, end, fields in _mappings(maps):
        named = len(fields) > 5
        own = named and _PYTHON.fullmatch(fields[5]) is not None
        if own:
            behind = end
        if b"w" in fields[1] and (own or (not named and start == behind)):
            found.append((start, end))
            behind = end
    return found


def _shared(maps: bytes, address: int) -> Seen:
    for start, end, fields in _mappings(maps):
        if start <= address < end:
            place = address - start + int(fields[2], 16)
            file = f"{os.fsdecode(fields[3])} {os.fsdecode(fields[4])}"
            return Seen("lock", "", (file, place))
    return Seen("lock")
