"""Simulates an epoch of a DataLoader event by event: tasks, workers, the queue, the pin thread and
the loop, which share some cores.

It follows torch/utils/data/dataloader.py. `prefetch_factor` × workers tasks are sent at the start,
and one more each time a batch is handed over: to the workers in turn, or with `in_order=False` to
the next worker with room. A batch that comes before its turn waits. CPU work shares the cores
equally. Virtual time makes that cheap: all jobs run at speed min(1, cores / jobs), so the next to
end is the one with the least sum of its own work and the work done by each job before it began.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

from .device_work import Together


class Times(NamedTuple):
    """A batch's work in ns, one value a batch. Lists, not arrays: they are read one at a time."""

    work_cpu: Sequence[float]  # fetch, collate, and the part of packing that blocks the worker
    work_idle: Sequence[float]
    send: Sequence[float]  # from the end of that work until main can take the batch
    # main: taking the message, unpacking (without a pin thread), sending the next task
    receive: Sequence[float]
    pin_cpu: Sequence[float]  # pin thread: unpacking and copying
    draw: Sequence[float]  # main: drawing the indices, for the tasks sent at the start
    compute_cpu: Sequence[float]
    compute_idle: Sequence[float]
    # of the work, what is done while holding a lock that workers share
    held_cpu: Sequence[float] = ()
    held_idle: Sequence[float] = ()
    copy: Sequence[float] = ()  # on the device, where there is one
    kernel: Sequence[float] = ()

    def part(self, first: int, count: int) -> Times:
        """The times of `count` batches."""
        return Times(*(values[first : first + count] for values in self))


@dataclass(frozen=True)
class Epoch:
    """One simulated epoch, ns. `ends` is when each step was over, on the device too, from
    `iter()`."""

    ends: list[float]
    work_ns: float  # Σ over tasks worked on, from fetch's beginning to its end
    worked: int
    compute_ns: float


@dataclass(frozen=True)
class Setting:
    """How the loop is set up. `compute_weight` is how many cores its computing wants at once."""

    workers: int
    prefetch: int
    in_order: bool
    pin: bool
    cpus: float
    compute_weight: float
    start_ns: float
    cold_ns: float
    hop_ns: float
    more_tasks: bool  # the epoch goes on after the simulated batches
    device: Together | None = None  # None: there is none, or it was not timed


class _Device:
    """The work that the device has been given, and when it will be done."""

    def __init__(self, times: Times, together: Together | None) -> None:
        self._times, self._together = times, together
        self._link = self.done = 0.0

    def given(self, row: int, t: float) -> float:
        """A batch was handed over at `t`: its copies and kernels are issued. When the program goes
        on."""
        together = self._together
        if together is None:
            return t
        if together.copy_stream:
            self._link = copied = max(self._link, t) + self._times.copy[row]
        else:
            self.done = copied = max(self.done, t) + self._times.copy[row]
        goes_on = copied if together.blocking else t
        self.done = max(self.done, copied, goes_on) + self._times.kernel[row]
        return goes_on

    def left(self, t: float) -> float:
        """The program has done its part of the step at `t`: when it asks for the next batch."""
        return max(t, self.done) if self._together is not None and self._together.synchronous else t


def epoch(times: Times, setting: Setting) -> Epoch:
    """One epoch of these batches; with `more_tasks`, workers go on with the first ones again."""
    return _Loader(times, setting).epoch() if setting.workers else _alone(times, setting)


def _alone(times: Times, setting: Setting) -> Epoch:
    """No workers: one batch after another in main (`receive`: all of loading, `compute_*`: the
    rest)."""
    slow = max(1.0, 1.0 / setting.cpus)
    slow_compute = max(1.0, setting.compute_weight / setting.cpus)
    t, computing, ends = setting.start_ns + setting.cold_ns, 0.0, []
    device = _Device(times, setting.device)
    for k in range(len(times.work_cpu)):
        t += (times.work_cpu[k] + times.receive[k] + times.pin_cpu[k]) * slow + times.work_idle[k]
        compute = times.compute_cpu[k] * slow_compute + times.compute_idle[k]
        computing += compute
        t = device.left(device.given(k, t) + compute)
        ends.append(max(t, device.done))
    return Epoch(ends, 0.0, 0, computing)


class _Queue(deque[int]):
    """Tasks on their way, and the processes that wait for one. A lock is a queue of one task: who
    takes it puts it back."""

    def __init__(self, *tasks: int) -> None:
        super().__init__(tasks)
        self.takers: deque[_Process] = deque()


# A process yields the empty queue it waits for, the ns that it idles, or the ns that it computes
# with the number of cores it wants.
_Process = Iterator[_Queue | float | tuple[float, float]]


class _Machine:
    """The clock and the cores. `v` is virtual time: the work done by each running job."""

    def __init__(self, cpus: float) -> None:
        self.cpus = cpus
        self.t = self.v = self.demand = 0.0  # demand: cores wanted by what runs
        self.order = count()  # of events at the same time
        self.timed: list[tuple[float, int, int, _Process | _Queue]] = []
        self.running: list[tuple[float, int, float, _Process]] = []

    def resume(self, process: _Process) -> None:
        """Let it go on until it waits."""
        while (asked := next(process)) == 0:
            pass
        if isinstance(asked, _Queue):
            asked.takers.append(process)
        elif isinstance(asked, tuple):
            work, cores = asked
            heappush(self.running, (self.v + work, next(self.order), cores, process))
            self.demand += cores
        else:
            self.later(asked, process)

    def later(self, ns: float, then: _Process | _Queue, task: int = 0) -> None:
        """After so long a process goes on, or a task arrives in a queue."""
        heappush(self.timed, (self.t + ns, next(self.order), task, then))

    def put(self, queue: _Queue, task: int) -> None:
        queue.append(task)
        if queue.takers:
            self.resume(queue.takers.popleft())

    def step(self) -> None:
        """The next event: of those at a given time, or the next job that ends."""
        speed = 1.0 if self.demand <= self.cpus else self.cpus / self.demand
        now = self.t + (self.running[0][0] - self.v) / speed if self.running else math.inf
        if self.timed and self.timed[0][0] < now:
            now, _, task, then = heappop(self.timed)
            self.v += (now - self.t) * speed
        else:
            self.v, _, cores, then = heappop(self.running)
            self.demand = self.demand - cores if self.running else 0.0
            task = 0
        self.t = max(self.t, now)
        if isinstance(then, _Queue):
            self.put(then, task)
        else:
            self.resume(then)


class _Loader:
    """Workers, the pin thread and main, as processes of one machine."""

    def __init__(self, times: Times, setting: Setting) -> None:
        self.times, self.setting = times, setting
        self.rows = len(times.work_cpu)
        self.machine = _Machine(setting.cpus)
        self.queues = [_Queue() for _ in range(setting.workers)]
        self.arrived, self.to_pin = _Queue(), _Queue()
        self.lock = _Queue(0)
        self.owner: list[int] = []  # which worker has each task
        self.held = [0] * setting.workers  # tasks given to a worker and not yet handed over
        self.ends: list[float] = []
        self.worked = 0
        self.work_ns = self.compute_ns = 0.0

    def epoch(self) -> Epoch:
        machine = self.machine
        for process in (*map(self.worker, self.queues), self.pin_thread(), self.main()):
            machine.resume(process)
        while len(self.ends) < self.rows:
            machine.step()
        return Epoch(self.ends, self.work_ns, self.worked, self.compute_ns)

    def worker(self, queue: _Queue) -> _Process:
        machine, times = self.machine, self.times
        delivered = self.to_pin if self.setting.pin else self.arrived
        cold = self.setting.cold_ns
        while True:
            if not queue:
                yield queue
            task = queue.popleft()
            row = task % self.rows
            begun = machine.t + cold  # the cold start is not part of the work
            held = (times.held_cpu[row], times.held_idle[row]) if times.held_cpu else (0.0, 0.0)
            yield times.work_idle[row] - held[1] + cold
            cold = 0.0
            if any(held):
                if not self.lock:
                    yield self.lock
                self.lock.popleft()
                yield held[1]
                yield held[0], 1.0
                machine.put(self.lock, 0)
            yield times.work_cpu[row] - held[0], 1.0
            self.work_ns += machine.t - begun
            self.worked += 1
            machine.later(times.send[row], delivered, task)

    def pin_thread(self) -> _Process:
        while True:
            if not self.to_pin:
                yield self.to_pin
            task = self.to_pin.popleft()
            yield self.times.pin_cpu[task % self.rows], 1.0
            self.machine.put(self.arrived, task)

    def main(self) -> _Process:
        machine, times, setting = self.machine, self.times, self.setting
        device = _Device(times, setting.device)
        tasks = 1 << 60 if setting.more_tasks else self.rows
        starting = setting.start_ns  # the first tasks are drawn one after another
        for task in range(min(setting.prefetch * setting.workers, tasks)):
            starting += times.draw[task % self.rows]
            self.send_task(starting)
        yield starting
        early: set[int] = set()  # batches that were taken and not yet handed over
        for awaited in count():
            task = awaited if setting.in_order else -1
            while task not in early:
                if not self.arrived:
                    yield self.arrived
                taken = self.arrived.popleft()
                yield times.receive[taken % self.rows], 1.0
                early.add(taken)
                task = awaited if setting.in_order else taken
            early.discard(task)
            self.held[self.owner[task]] -= 1
            if len(self.owner) < tasks:
                self.send_task(machine.t + setting.hop_ns)
            row, begun = task % self.rows, machine.t
            yield device.given(row, begun) - begun + times.compute_idle[row]
            yield times.compute_cpu[row], setting.compute_weight
            yield device.left(machine.t) - machine.t
            self.ends.append(max(machine.t, device.done))
            self.compute_ns += machine.t - begun

    def send_task(self, t: float) -> None:
        """One more task to the worker whose turn it is; it arrives at `t`."""
        workers = self.setting.workers
        turn = (self.owner[-1] + 1) % workers if self.owner else 0
        if not self.setting.in_order:  # to one with room, if there is any
            for _ in range(workers):
                if self.held[turn] < self.setting.prefetch:
                    break
                turn = (turn + 1) % workers
        self.machine.later(t - self.machine.t, self.queues[turn], len(self.owner))
        self.owner.append(turn)
        self.held[turn] += 1
