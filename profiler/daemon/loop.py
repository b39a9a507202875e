"""The sampler's life: let go of everything, say who it is, sample tick by tick, end when the
training has ended."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import psutil

from ..base import schema
from ..base.atomic_write import write_atomically
from ..base.clock import now_ns
from ..base.host import boot_id, host_name, usable_cores
from ..store.lanes.compaction import Compactor
from ..store.lanes.lane import Budget, Lane
from . import cgroup, host
from .detach import detach
from .gpu import open_gpus
from .keeper import Keeper
from .machine import Machine, explain
from .pace import Allowance
from .processes import Probe, Usage, probe
from .reasons import Reasons
from .registry import Registry, Worker
from .smaps import Turns
from .stack_capture.bursts import Bursts

INTERVAL_S = 0.2
NOBODY_NS = 10_000_000_000  # how long it waits for the first process to register
SCAN_NS = 1_000_000_000
SLOW_NS = 1_000_000_000
KEEPING_NS = (
    500_000_000  # should training process and sampler be killed together, no more than this is lost
)
LANES_BYTES = 24_000_000
CPU_SHARE = 0.014  # of one core; the promise is 0.015
CPU_BURST_NS = 400_000_000
LONGEST_NS = 3_000_000_000  # however dear a tick is, the end of the training is noticed by then


N = TypeVar("N", int, float)


def main(argv: Sequence[str]) -> int:
    """RUN_DIR SYSTEM_DIR [--interval SECONDS] [--keeper FD].

    Returns the exit status: 0, or 2 for arguments that cannot be meant.
    """
    try:
        run, system, interval_s, keeper_fd = _arguments(list(argv))
    except ValueError as error:
        print(f"loaderscope sampler: {error}", file=sys.stderr)
        return 2
    try:
        detach(keeper_fd)
        sampler = Sampler(run, system, interval_s, keeper_fd=keeper_fd)
    except Exception:
        return 0  # a removed directory, a full disk: nobody is there to be told
    try:
        sampler.work()
    except Exception:
        pass  # harmless first: the training must not hear of it
    finally:
        sampler.close()
    return 0


def _arguments(argv: list[str]) -> tuple[Path, Path, float, int | None]:
    interval_s = _taken_from(argv, "--interval", float, "a number of seconds")
    interval_s = INTERVAL_S if interval_s is None else interval_s
    keeper_fd = _taken_from(argv, "--keeper", int, "the number of a descriptor")
    if len(argv) != 2 or not 0.01 <= interval_s <= 3600:
        raise ValueError(
            "usage: RUN_DIR SYSTEM_DIR [--interval SECONDS], between 0.01 and 3600 seconds"
        )
    return Path(argv[0]).absolute(), Path(argv[1]).absolute(), interval_s, keeper_fd


def _taken_from(argv: list[str], option: str, kind: Callable[[str], N], what: str) -> N | None:
    if option not in argv:
        return None
    at = argv.index(option)
    try:
        value = kind(argv[at + 1])
    except (IndexError, ValueError):
        raise ValueError(f"{option} needs {what}") from None
    del argv[at : at + 2]
    return value


class Sampler:
    """Owns the system directory: `sampler.json`, `host.json`, the lanes machine, core, process and
    gpu, and bursts."""

    def __init__(
        self,
        run: Path,
        system: Path,
        interval_s: float,
        root: Path = Path("/"),
        keeper_fd: int | None = None,
    ) -> None:
        """Writes both JSON files. Raises OSError where it cannot."""
        self.system = system
        self.keeper = Keeper(run, system, keeper_fd)
        self.interval_ns = int(interval_s * 1e9)
        self.reasons = Reasons()
        self._identity: dict[str, object] = {
            "format": host.FORMAT,
            "pid": os.getpid(),
            "create_time": psutil.Process().create_time(),
            "host": host_name(),
            "interval_s": interval_s,
        }
        self._tell("sampler.json", self._identity)
        container = cgroup.find(root)
        explain(container, self.reasons)
        self.gpus = open_gpus(root, self.reasons)
        self.machine = Machine(root, self.reasons, container)
        self.registry = Registry(
            run, host_name(), boot_id(root / "proc/sys/kernel/random/boot_id"), self._probe
        )
        self._host = host.facts(root, container, self.gpus)
        self.bursts = Bursts(run, system, self.reasons, _cores(container.cpu_quota), root)
        self._tell_host()
        self.budget = Budget(LANES_BYTES)
        self.machine_lane = self._lane("machine", schema.MACHINE)
        self.core_lane = self._lane("core", schema.core_schema(self.machine.cores))
        self.process_lane = self._lane("process", schema.PROCESS)
        self.gpu_lane = self._lane("gpu", schema.GPU)
        self._turns = Turns(now_ns, time.thread_time_ns)
        self._slow_due_ns = 0
        self._scan_due_ns = 0

    def work(self) -> None:
        """Tick until nobody is left to be sampled."""
        if self.gpus is not None:
            self.gpus.start()
        gc.collect()
        gc.freeze()
        begun = now_ns()
        allowance = Allowance(CPU_SHARE, CPU_BURST_NS, begun, time.process_time_ns())
        due = begun
        while self.tick(now_ns()):
            if not self.registry.registered and now_ns() - begun > NOBODY_NS:
                return
            if self.registry.registered and not self.registry.living and self._over():
                return
            due += allowance.wait_ns(self.interval_ns, LONGEST_NS, now_ns(), time.process_time_ns())
            late = now_ns() - due
            if (
                late > 0
            ):  # the machine slept, or had no core for it: missed ticks are not made up for
                due += late
            while (left := due - now_ns()) > KEEPING_NS:  # ticks may be made rare, keeping may not
                time.sleep(KEEPING_NS / 1e9)
                self.keeper.round()
            time.sleep(max(0, left) / 1e9)

    def tick(self, now: int) -> bool:
        """One sample of everything. False when there is nothing left to record into."""
        self.keeper.round()
        try:
            if now >= self._scan_due_ns or not self.registry.registered:
                self._scan_due_ns = now + SCAN_NS
                self.registry.scan()
            os.stat(self.system)
        except OSError:
            return False  # the run was removed
        self.registry.update()
        self._sample_processes(now)
        for folder in self.registry.taken_leave():
            self.keeper.drop(folder)
        self.bursts.tick(now, self.registry.living)
        machine, busy = self.machine.sample(now)
        _record(self.machine_lane, now, *machine)
        _record(self.core_lane, now, *busy)
        if self.gpus is not None:
            for row in self.gpus.rows(now):
                _record(self.gpu_lane, now_ns(), *row)
        if self.reasons.changed:
            self._tell_host()
        return not any(lane.stopped for lane in self._lanes())

    def close(self) -> None:
        """Keep what is left, end a burst at work, seal the lanes and say that it has ended. Never
        raises."""
        self.keeper.close()
        self.bursts.close()
        if self.reasons.changed:
            with suppress(OSError):
                self._tell_host()
        if self.gpus is not None:
            self.gpus.close()
        for lane in self._lanes():
            lane.close()
        with suppress(OSError):
            self._tell("sampler.json", {**self._identity, "ended_clock_ns": now_ns()})

    def _over(self) -> bool:
        # Whoever registers looks for a living sampler afterwards. So it says first that it ends,
        # and looks once more: either it sees the newcomer here, or the newcomer sees that a new
        # sampler is needed.
        try:
            self._tell("sampler.json", {**self._identity, "ended_clock_ns": now_ns()})
            self.registry.scan()
            if not self.registry.living:
                return True
            self._tell("sampler.json", self._identity)
        except OSError:
            return True
        return False

    def _sample_processes(self, now: int) -> None:
        slow = now >= self._slow_due_ns
        if slow:
            self._slow_due_ns = now + SLOW_NS
        rows: list[tuple[Probe, int, int, Worker | None, Usage]] = []
        seen: set[int] = set()
        for main in self.registry.living:
            usage = main.probe.usage() if main.probe is not None else None
            if main.probe is None or usage is None:
                self.registry.drop(main)
                continue
            owner = main.probe.pid
            if owner not in seen:  # one process may have registered twice
                seen.add(owner)
                rows.append((main.probe, now_ns(), owner, None, usage))
            for pid, worker in list(main.workers.items()):
                used = worker.probe.usage()
                if used is None:
                    del main.workers[pid]
                else:
                    rows.append((worker.probe, now_ns(), owner, worker, used))
        chosen = self._turns.choose([(one, usage.rss_bytes) for one, _, _, _, usage in rows])
        for one, t_ns, owner, kind, usage in rows:
            if self._turns.too_big(usage.rss_bytes):
                sentence = (
                    "a process is so large that walking its page tables would slow the training "
                    "down"
                )
                self.reasons.add(sentence, "uss_bytes", "pss_bytes")
            uss, pss = (
                self._turns.read(one, usage.rss_bytes, one.detail) if one is chosen else (-1, -1)
            )
            fds, cores = one.slow() if slow else (-1, -1)
            role, number, loader = (0, -1, -1) if kind is None else (1, kind.worker, kind.loader)
            *measured, delay, threads = usage
            _record(
                self.process_lane,
                *(t_ns, *measured[:3], uss, pss, *measured[3:]),
                *(one.pid, owner, role, number, loader, threads, fds, cores, delay),
            )

    def _probe(self, pid: int) -> Probe | None:
        return probe(pid, self.reasons)

    def _lane(self, name: str, kind: schema.Schema) -> Lane:
        return Lane(
            self.system, name, kind, self.budget, lambda why: None, Compactor(self.system, name)
        )

    def _lanes(self) -> tuple[Lane, ...]:
        return self.machine_lane, self.core_lane, self.process_lane, self.gpu_lane

    def _tell(self, name: str, facts: dict[str, object]) -> None:
        write_atomically(self.system / name, json.dumps(facts, indent=1))

    def _tell_host(self) -> None:
        self.reasons.changed = False
        self._tell("host.json", {**self._host, "reasons": dict(self.reasons.sentences)})


def _cores(quota: float | None) -> float:
    """How many cores a training process may use, as far as the sampler is under the same limits."""
    cores = usable_cores()
    return float(cores) if quota is None else min(float(cores), quota)


def _record(lane: Lane, *values: float) -> None:
    """One record, unless the lane has stopped: then this tick is the last."""
    if lane.stopped is None:
        lane.append(*values)
