"""The sampler's life: detach, write who it is, sample tick by tick, end with the training."""

from __future__ import annotations

import gc
import json
import math
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

from msgspec.structs import replace

from ..base import schema
from ..base.atomic_write import write_atomically
from ..base.clock import now_ns
from ..base.facts import FORMAT
from ..base.host import boot_id, host_name, usable_cores
from ..base.liveness import created_here
from ..base.tolerant import as_json
from ..store.lanes.lane import Budget, Lane
from .gpu import Gpus
from .keeper import Keeper
from .machine import Machine, facts
from .pace import Allowance, Pace
from .processes import LARGEST_BYTES, Probe, Usage
from .processes import probe as open_probe
from .reasons import Reasons
from .registry import Registry, Worker
from .stack_capture.bursts import Bursts

ROOT = Path("/")
INTERVAL_S = 0.2
NOBODY_NS = 10_000_000_000  # how long it waits for the first process to register
SCAN_NS = 1_000_000_000
SLOW_NS = 1_000_000_000
KEEPING_NS = 500_000_000  # if training and sampler are killed together, no more than this is lost
LISTENING_NS = 50_000_000
NICENESS = 5
LANES_BYTES = 24_000_000
CPU_SHARE = 0.014  # of one core; the promise is 0.015
CPU_BURST_NS = 400_000_000
# How often the memory of a process is read in detail, and what share of one core that may cost.
DETAIL_NS, DETAIL_SHARE = 2_000_000_000, 0.003
LONGEST_NS = 3_000_000_000  # the end of the training is noticed by then, at any cost of a tick
TOO_BIG = "a process is so large that walking its page tables would slow the training down"


def main(argv: Sequence[str]) -> int:
    """RUN_DIR SYSTEM_DIR [--interval SECONDS] [--keeper FD], as the training process passes them.
    Returns 0."""
    run, system, *options = argv
    given = dict(zip(options[::2], options[1::2], strict=True))
    try:
        detach()
        sampler = Sampler(
            Path(run),
            Path(system),
            float(given.get("--interval", INTERVAL_S)),
            int(given.get("--keeper", -1)),
        )
    except Exception:
        return 0  # a removed directory, a full disk: nobody could be informed
    try:
        sampler.work()
    except Exception:
        pass  # harmless first: the training must not hear of it
    finally:
        sampler.close()
    return 0


def detach() -> None:
    """Cut the sampler loose: a session of its own, deaf to the terminal, and behind everybody else
    for a core. Whoever starts it has closed its files and set its folder.

    SIGINT and SIGHUP are ignored (Ctrl-C is for the training, whose end ends the sampler);
    SIGTERM raises SystemExit(0). Never raises.
    """
    with suppress(OSError):  # already the leader of a session
        os.setsid()
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _terminate)
    with suppress(OSError):
        os.nice(NICENESS)


def _terminate(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # once is enough: the way out must not be interrupted
    sys.exit(0)


class Sampler:
    """Owns the system directory: `sampler.json`, `host.json`, lanes, and bursts."""

    def __init__(self, run: Path, system: Path, interval_s: float, keeper_fd: int = -1) -> None:
        """Writes both JSON files. Raises OSError where it cannot."""
        self.system = system
        self.keeper = Keeper(run, system, keeper_fd)
        self.interval_ns = int(interval_s * 1e9)
        self.reasons = Reasons()
        self._identity: dict[str, object] = {
            "format": FORMAT,
            "pid": os.getpid(),
            "create_time": created_here(),
            "host": host_name(),
            "interval_s": interval_s,
        }
        self._tell_own()
        self.machine = Machine(ROOT, self.reasons)
        self.gpus = Gpus(ROOT, self.reasons)
        boot = boot_id()
        self.registry = Registry(run, host_name(), boot, lambda pid: open_probe(pid, self.reasons))
        self._host = facts(self.machine.container, self.gpus.facts())
        # How many cores a training process may use, if it has the same limits.
        cores = min(float(usable_cores()), self.machine.container.cpu_quota or math.inf)
        self.bursts = Bursts(run, system, self.reasons, cores)
        self._tell_host()
        self.budget = Budget(LANES_BYTES)
        kinds = schema.MACHINE, schema.PROCESS, schema.GPU
        self.lanes = self.machine_lane, self.process_lane, self.gpu_lane = tuple(
            # A lane that stops ends the sampler.
            Lane(system, kind.name, kind, self.budget, lambda why: None, trimmed=True)
            for kind in kinds
        )
        self._detail_pace = Pace(DETAIL_SHARE)
        self._slow_due_ns = 0
        self._scan_due_ns = 0

    def work(self) -> None:
        """Tick until nobody is left to be sampled."""
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
            due = max(due, now_ns())  # ticks missed for want of a core, or asleep, stay missed
            # Ticks may become rare; copying memory and hearing requests may not.
            while (left := due - now_ns()) > (
                pause := LISTENING_NS if self.bursts.busy else KEEPING_NS
            ):
                self.bursts.wait(pause / 1e9)
                self.keeper.round()
                self.bursts.listen()
            self.bursts.wait(max(0, left) / 1e9)

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
        for folder in self.registry.newly_ended():
            self.keeper.drop(folder)
        self.bursts.tick(now, self.registry.living)
        self.machine_lane.append(now, *self.machine.sample(now))
        for row in self.gpus.rows(now):
            self.gpu_lane.append(now_ns(), *row)
        if self.reasons.changed:
            self._tell_host()
        return not any(lane.stopped for lane in self.lanes)

    def close(self) -> None:
        """Copy what is left to the files, end a burst at work, close the lanes and write that it
        has ended. Never raises."""
        self.keeper.close()
        self.bursts.close()
        if self.reasons.changed:
            with suppress(OSError):
                self._tell_host()
        for lane in self.lanes:
            lane.close()
        with suppress(OSError):
            self._tell_own(ended_clock_ns=now_ns())

    def _over(self) -> bool:
        # A process registers first and then looks for a living sampler. So this one first writes
        # that it ends, and then looks again: either it sees the new process, or that process sees
        # that it needs another sampler.
        try:
            self._tell_own(ended_clock_ns=now_ns())
            self.registry.scan()
            if not self.registry.living:
                return True
            self._tell_own()
        except OSError:
            return True
        return False

    def _sample_processes(self, now: int) -> None:
        slow = now >= self._slow_due_ns
        if slow:
            self._slow_due_ns = now + SLOW_NS
        rows: dict[int, tuple[int, int, Worker, Usage]] = {}  # a process may register twice
        for main in self.registry.living:
            owner = main.probe.pid
            for pid, each in {owner: Worker(main.probe, -1, -1), **main.workers}.items():
                usage = each.probe.usage()
                if usage is not None:
                    rows.setdefault(pid, (now_ns(), owner, each, usage))
                elif pid != owner:
                    del main.workers[pid]
                else:
                    self.registry.drop(main)
                    break
        details = self._details(
            now,
            [
                each.probe
                for _, _, each, used in rows.values()
                if used.rss_bytes <= LARGEST_BYTES and now - each.probe.detailed_ns >= DETAIL_NS
            ],
        )
        for t_ns, owner, each, usage in rows.values():
            probe = each.probe
            if usage.rss_bytes > LARGEST_BYTES:
                self.reasons.add(TOO_BIG, "uss_bytes", "pss_bytes")
            *measured, threads, delay, children = usage
            self.process_lane.append(
                t_ns,
                *measured[:3],
                *details.get(probe.pid, (-1, -1)),
                *measured[3:],
                probe.pid,
                owner,
                int(probe.pid != owner),
                each.worker,
                each.loader,
                threads,
                probe.fds() if slow else -1,
                delay,
                children,
            )

    def _details(self, now: int, probes: Sequence[Probe]) -> dict[int, tuple[int, int]]:
        """(USS, PSS) of the process that has waited longest, by its id; none where it is too early.
        The kernel walks the page tables for it, which is expensive."""
        if not probes or not self._detail_pace.due(now):
            return {}
        probe = min(probes, key=lambda each: each.detailed_ns)
        begun, probe.detailed_ns = time.thread_time_ns(), now
        found = probe.detail()
        self._detail_pace.paid(now, time.thread_time_ns() - begun)
        return {probe.pid: found}

    def _tell(self, name: str, facts: dict[str, object]) -> None:
        write_atomically(self.system / name, json.dumps(facts, indent=1))

    def _tell_own(self, **more: int) -> None:
        self._tell("sampler.json", self._identity | more)

    def _tell_host(self) -> None:
        self.reasons.changed = False
        self._tell("host.json", as_json(replace(self._host, reasons=self.reasons.sentences)))
