"""A DataLoader's epoch, event by event: tasks, workers, the queue, the pin thread and the loop,
sharing some cores.

It follows torch/utils/data/dataloader.py: `prefetch_factor` × workers tasks are sent at the start,
and one more each time a batch is handed over, to the workers in turn (with `in_order=False`: to the
next with room); a batch that is not the one awaited is set aside; the loop takes what it awaits,
then computes. CPU work shares the cores equally (processor sharing), which virtual time makes
cheap: all jobs run at speed min(1, cores / jobs), so the next to end is the one with the least work
left at its start plus the work done by anyone since.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from .device_work import Together

WORKER_IDLE, WORKER_CPU, ARRIVE, PIN_CPU, RECEIVE, LOOP_IDLE, LOOP_CPU, TASK, LOOP_LEFT = range(9)


@dataclass(frozen=True)
class Times:
    """A batch's work in ns, one value a batch in the order of tasks. Lists, not arrays: read one at
    a time."""

    work_cpu: Sequence[float]  # fetch, collate, and what of packing the worker itself must do
    work_idle: Sequence[float]
    send: Sequence[float]  # from the end of that work until main can take the batch
    receive: Sequence[
        float
    ]  # main: taking the message, unpacking (without a pin thread), sending the next task
    pin_cpu: Sequence[float]  # pin thread: unpacking and copying
    draw: Sequence[float]  # main: drawing the indices, for the tasks sent at the start
    compute_cpu: Sequence[float]
    compute_idle: Sequence[float]
    copy: Sequence[float] = ()  # on the device, where there is one
    kernel: Sequence[float] = ()


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
    more_tasks: bool  # the epoch goes on after what is simulated
    device: Together | None = None  # None: there is none, or it was not timed


class _Device:
    """What the device has been given until now, and when it will have done that."""

    def __init__(self, times: Times, together: Together | None) -> None:
        self._copy, self._kernel, self._together = times.copy, times.kernel, together
        self._link = self.done = 0.0

    def given(self, row: int, t: float) -> float:
        """A batch was handed over at `t`: its copies and kernels are issued. When the program goes
        on."""
        together = self._together
        if together is None:
            return t
        if together.aside:
            self._link = copied = max(self._link, t) + self._copy[row]
        else:
            self.done = copied = max(self.done, t) + self._copy[row]
        goes_on = copied if together.blocking else t
        self.done = max(self.done, copied, goes_on) + self._kernel[row]
        return goes_on

    def left(self, t: float) -> float:
        """The program has done its part of the step at `t`: when it asks for the next batch."""
        return max(t, self.done) if self._together is not None and self._together.synchronous else t


def alone(times: Times, setting: Setting, first: int, count: int) -> Epoch:
    """No workers: one batch after another in main (`receive`: all of loading, `compute_*`: the
    rest)."""
    slow = max(1.0, 1.0 / setting.cpus)
    slow_compute = max(1.0, setting.compute_weight / setting.cpus)
    t, computing, ends = setting.start_ns, 0.0, []
    device = _Device(times, setting.device)
    for k in range(first, first + count):
        t += (times.work_cpu[k] + times.receive[k] + times.pin_cpu[k]) * slow + times.work_idle[k]
        compute = times.compute_cpu[k] * slow_compute + times.compute_idle[k]
        computing += compute
        t = device.left(device.given(k, t) + compute)
        ends.append(max(t, device.done))
    return Epoch(ends, 0.0, 0, computing)


def epoch(times: Times, setting: Setting, first: int, count: int) -> Epoch:
    """`count` batches of one epoch, from row `first` on; with `more_tasks` rows wrap around for
    those beyond."""
    if not setting.workers:
        return alone(times, setting, first, count)
    workers, prefetch, in_order, pin = (
        setting.workers,
        setting.prefetch,
        setting.in_order,
        setting.pin,
    )
    cpus, weight_of_compute = setting.cpus, setting.compute_weight
    work_cpu, work_idle, send, receive = times.work_cpu, times.work_idle, times.send, times.receive
    pin_cpu, compute_cpu, compute_idle = times.pin_cpu, times.compute_cpu, times.compute_idle
    rows = len(work_cpu)
    device = _Device(times, setting.device)
    tasks = 1 << 60 if setting.more_tasks else count
    hop = setting.hop_ns
    timed: list[tuple[float, int, int]] = []
    running: list[tuple[float, int, int]] = []
    queues: list[deque[int]] = [deque() for _ in range(workers)]
    held = [0] * workers  # tasks given to a worker and not yet handed over
    at_work = [-1] * workers
    begun = [0.0] * workers
    cold = [setting.cold_ns] * workers
    owner: dict[int, int] = {}
    arrived: deque[int] = deque()
    to_pin: deque[int] = deque()
    pinning = False
    aside: set[int] = set()
    idle_main = False
    turn = sent = awaited = 0
    ends: list[float] = []
    worked = 0
    work_total = compute_total = compute_begun = 0.0
    t = v = 0.0
    demand = 0.0  # cores wanted by what runs

    # The tasks of the start are drawn one after another.
    at = setting.start_ns
    for task in range(min(prefetch * workers, tasks)):
        at += times.draw[(first + task) % rows]
        heappush(timed, (at, TASK, task))
        owner[task] = turn
        held[turn] += 1
        turn = (turn + 1) % workers
        sent += 1
    starting = at

    step = "next"
    waiting_start = True
    handed = -1
    while len(ends) < count:
        # What main does without time passing.
        while not waiting_start and step != "busy":
            if step == "next":
                if in_order and awaited in aside:
                    aside.discard(awaited)
                    handed, step = awaited, "hand"
                elif arrived:
                    task = arrived[0]
                    heappush(running, (v + receive[(first + task) % rows], RECEIVE, task))
                    demand += 1.0
                    step = "busy"
                else:
                    idle_main, step = True, "busy"
            else:  # "hand": the batch goes to the loop, and one more task to a worker
                k = owner.pop(handed)
                held[k] -= 1
                awaited += 1
                if sent < tasks:
                    if not in_order:
                        for _ in range(workers):
                            if held[turn] < prefetch:
                                break
                            turn = (turn + 1) % workers
                    owner[sent] = turn
                    held[turn] += 1
                    heappush(timed, (t + hop, TASK, sent))
                    sent += 1
                    turn = (turn + 1) % workers
                row = (first + handed) % rows
                compute_begun = t
                step = "busy"
                idle = device.given(row, t) - t + compute_idle[row]
                if idle > 0:
                    heappush(timed, (t + idle, LOOP_IDLE, row))
                else:
                    heappush(running, (v + compute_cpu[row], LOOP_CPU, row))
                    demand += weight_of_compute
        # The next event: of those at a given time, or the next job that ends.
        speed = 1.0 if demand <= cpus else cpus / demand
        if running:
            done = t + (running[0][0] - v) / speed
            if timed and timed[0][0] < done:
                now, what, who = heappop(timed)
                v += (now - t) * speed
            else:
                v, what, who = heappop(running)
                now = done
                demand -= weight_of_compute if what == LOOP_CPU else 1.0
                if not running:
                    demand = 0.0
        else:
            now, what, who = heappop(timed)
        t = now if now > t else t
        if waiting_start and t >= starting:
            waiting_start = False
        free = -1
        if what == WORKER_IDLE:
            heappush(running, (v + work_cpu[(first + at_work[who]) % rows], WORKER_CPU, who))
            demand += 1.0
        elif what == WORKER_CPU:
            task = at_work[who]
            work_total += t - begun[who]
            worked += 1
            heappush(timed, (t + send[(first + task) % rows], ARRIVE, task))
            at_work[who] = -1
            free = who
        elif what == TASK:
            k = owner[who]
            queues[k].append(who)
            if at_work[k] < 0:
                free = k
        elif what == RECEIVE:
            arrived.popleft()
            if in_order and who != awaited:
                aside.add(who)
                step = "next"
            else:
                handed, step = who, "hand"
        elif what == LOOP_IDLE:
            if compute_cpu[who] > 0:
                heappush(running, (v + compute_cpu[who], LOOP_CPU, who))
                demand += weight_of_compute
            else:
                heappush(timed, (device.left(t), LOOP_LEFT, who))
        elif what == LOOP_CPU:
            heappush(timed, (device.left(t), LOOP_LEFT, who))
        elif what == LOOP_LEFT:
            ends.append(max(t, device.done))
            compute_total += t - compute_begun
            step = "next"
        elif what == ARRIVE and pin:
            to_pin.append(who)
        else:  # the batch can be taken: it has arrived, or is pinned
            arrived.append(who)
            if what == PIN_CPU:
                pinning = False
            if idle_main:
                idle_main, step = False, "next"
        if to_pin and not pinning:
            task = to_pin.popleft()
            pinning = True
            heappush(running, (v + pin_cpu[(first + task) % rows], PIN_CPU, task))
            demand += 1.0
        if free >= 0 and queues[free]:
            task = at_work[free] = queues[free].popleft()
            begun[free] = t + cold[free]  # what is cold at the start was measured apart
            row = (first + task) % rows
            idle = work_idle[row] + cold[free]
            cold[free] = 0.0
            if idle > 0:
                heappush(timed, (t + idle, WORKER_IDLE, free))
            else:
                heappush(running, (v + work_cpu[row], WORKER_CPU, free))
                demand += 1.0
    return Epoch(ends, work_total, worked, compute_total)
