"""Which processes to sample: the training processes registered in the run directory, and the
workers they started."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ..base.errors import RunUnreadable
from ..base.facts import EndedProcess
from ..base.liveness import CREATE_TIME_TOLERANCE_S
from ..base.schema import WORKER
from ..base.tolerant import read_as
from .lane_tail import LaneTail
from .processes import Probe

# A worker's row is written after it was started; start times have a resolution of 10 ms.
LATE_START_NS = 1_000_000_000

OpenProbe = Callable[[int], Probe | None]


@dataclass
class Worker:
    """A worker that lives."""

    probe: Probe
    worker: int
    loader: int


@dataclass
class Main:
    """A registered training process of this host. `ended` is final."""

    directory: Path
    tail: LaneTail
    probe: Probe | None = None
    ended: bool = False
    stamp: tuple[int, int] = (-1, -1)
    workers: dict[int, Worker] = field(default_factory=dict)
    stacks: str = "on"  # whether bursts of stacks are taken by themselves: "on", "off" or "eager"


class Registry:
    """Follows a run directory. A number that the system has given to another process is not taken
    for the old."""

    def __init__(self, run: Path, host: str, boot_id: str | None, open_probe: OpenProbe) -> None:
        self.run = run
        self.host = host
        self.boot_id = boot_id
        self._open_probe = open_probe
        self.mains: dict[str, Main] = {}
        self._foreign: set[str] = set()
        self._ended: list[str] = []

    @property
    def registered(self) -> bool:
        """Whether any process of this host has ever registered."""
        return bool(self.mains)

    @property
    def living(self) -> list[Main]:
        return [main for main in self.mains.values() if not main.ended]

    def newly_ended(self) -> list[str]:
        """The folders of the processes that have ended since this was asked last."""
        ended, self._ended = self._ended, []
        return ended

    def scan(self) -> None:
        """Look for processes that are new. Raises OSError when the run directory is gone."""
        for name in os.listdir(self.run):
            if name.startswith("p") and name not in self.mains and name not in self._foreign:
                self._meet(name)

    def update(self) -> None:
        """Read what the known processes have written since: their end, and new workers. Never
        raises."""
        for main in self.living:
            self._reread(main)
            for row in main.tail.new() if not main.ended else ():
                self._employ(main, row)

    def drop(self, main: Main) -> None:
        """This process is gone, and its workers with it."""
        if not main.ended:
            self._ended.append(main.directory.name)
        main.ended = True
        main.probe = None
        main.workers.clear()

    def _meet(self, name: str) -> None:
        directory = self.run / name
        facts = _facts(directory)
        if facts is None:
            return  # not written yet, or not a process's folder
        same_boot = None in (facts.boot_id, self.boot_id) or facts.boot_id == self.boot_id
        if facts.host != self.host or not same_boot:
            self._foreign.add(name)
            return
        main = self.mains[name] = Main(directory, LaneTail(directory, "workers", WORKER))
        probe = main.probe = self._open_probe(facts.pid) if facts.pid is not None else None
        # Whether the process was made when it says; one that does not say is believed.
        same = probe is not None and (
            facts.create_time is None
            or abs(probe.create_time - facts.create_time) <= CREATE_TIME_TOLERANCE_S
        )
        if not same or facts.ended_clock_ns is not None:
            self.drop(main)

    def _reread(self, main: Main) -> None:
        try:
            found = os.stat(main.directory / "process.json")
        except OSError:
            return
        stamp = found.st_ino, found.st_mtime_ns
        facts = _facts(main.directory) if stamp != main.stamp else None
        if facts is None:
            return
        main.stamp, main.stacks = stamp, facts.stacks
        if facts.ended_clock_ns is not None:
            self.drop(main)

    def _employ(self, main: Main, row: tuple[float, ...]) -> None:
        _, t_ns, loader, _, worker, pid = (int(value) for value in row)
        probe = self._open_probe(pid)
        if probe is None or main.probe is None:
            return
        # With a fork server the parent is another process; then only the time can tell.
        child = probe.ppid == main.probe.pid
        if child or probe.start_ns <= t_ns + LATE_START_NS:
            main.workers[pid] = Worker(probe, worker, loader)


def _facts(directory: Path) -> EndedProcess | None:
    try:
        return read_as(EndedProcess, directory / "process.json")
    except RunUnreadable:
        return None
