"""Which processes to sample: the training processes registered in the run directory, and their
workers."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ..base.facts import EndedProcess
from ..base.liveness import CREATE_TIME_TOLERANCE_S
from ..base.schema import WORKER
from ..base.tolerant import read_or_empty
from ..store.lanes.lane_tail import LaneTail
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
    """A training process of this host that lives."""

    directory: Path
    tail: LaneTail
    probe: Probe
    stamp: tuple[int, int] = (-1, -1)
    workers: dict[int, Worker] = field(default_factory=dict)
    stacks: str = "on"  # whether bursts of stacks are taken automatically: "on", "off" or "eager"


class Registry:
    """Follows a run directory. A process id that the system has given to another process is not
    taken for the old one."""

    def __init__(self, run: Path, host: str, boot_id: str | None, open_probe: OpenProbe) -> None:
        self.run = run
        self.host = host
        self.boot_id = boot_id
        self.registered = False  # whether any process of this host has ever registered
        self._open_probe = open_probe
        self._living: dict[str, Main] = {}
        self._known: set[str] = set()  # folders that were looked at: living, ended or foreign
        self._ended: list[str] = []

    @property
    def living(self) -> list[Main]:
        return list(self._living.values())

    def newly_ended(self) -> list[str]:
        """The folders of the processes that have ended since the last call."""
        ended, self._ended = self._ended, []
        return ended

    def scan(self) -> None:
        """Look for processes that are new. Raises OSError when the run directory is gone."""
        for name in os.listdir(self.run):
            if name.startswith("p") and name not in self._known:
                self._meet(name)

    def update(self) -> None:
        """Read what the known processes have written since: their end, and new workers. Never
        raises."""
        for main in self.living:
            if not self._has_ended(main):
                for row in main.tail.new():
                    self._employ(main, row)

    def drop(self, main: Main) -> None:
        """This process is gone, and its workers with it."""
        main.workers.clear()
        if self._living.pop(main.directory.name, None):
            self._ended.append(main.directory.name)

    def _meet(self, name: str) -> None:
        directory = self.run / name
        facts = _facts(directory)
        if facts.format is None:
            return  # not written yet, or not a process's folder
        self._known.add(name)
        same_boot = None in (facts.boot_id, self.boot_id) or facts.boot_id == self.boot_id
        if facts.host != self.host or not same_boot:
            return
        self.registered = True
        probe = self._open_probe(facts.pid) if facts.pid is not None else None
        # Whether the process was made when it says; one that does not say is believed.
        same = probe is not None and (
            facts.create_time is None
            or abs(probe.create_time - facts.create_time) <= CREATE_TIME_TOLERANCE_S
        )
        if probe is not None and same and facts.ended_clock_ns is None:
            self._living[name] = Main(directory, LaneTail(directory, "workers", WORKER), probe)
        else:
            self._ended.append(name)

    def _has_ended(self, main: Main) -> bool:
        """Whether its description says so; read anew where it has changed."""
        try:
            found = os.stat(main.directory / "process.json")
        except OSError:
            return False
        stamp = found.st_ino, found.st_mtime_ns
        if stamp == main.stamp or (facts := _facts(main.directory)).format is None:
            return False
        main.stamp, main.stacks = stamp, facts.stacks
        ended = facts.ended_clock_ns is not None
        if ended:
            self.drop(main)
        return ended

    def _employ(self, main: Main, row: tuple[float, ...]) -> None:
        _, t_ns, loader, _, worker, pid = (int(value) for value in row)
        probe = self._open_probe(pid)
        # With a fork server the parent is another process; then only the time can tell.
        if probe is not None and (
            probe.ppid == main.probe.pid or probe.start_ns <= t_ns + LATE_START_NS
        ):
            main.workers[pid] = Worker(probe, worker, loader)


def _facts(directory: Path) -> EndedProcess:
    return read_or_empty(EndedProcess, directory / "process.json")
