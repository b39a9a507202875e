"""Signals at any moment: what their handlers raise arrives, and what they do is done."""

from __future__ import annotations

import atexit
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from torch.utils.data import DataLoader

from ..catalogue import Watch, program, say
from ..data import Rows, Stream, eat
from .table import Preempted

# When, in seconds from just before `watch`; what kind of moment a program draws is its caller's.
MOMENT = "HARMLESS_MOMENT"


def moment() -> float:
    return float(os.environ.get(MOMENT, "0.1"))


def raising(kind: type[BaseException]) -> Callable[[int, Any], None]:
    def handler(number: int, frame: Any) -> None:
        raise kind(number)

    return handler


class Manager:
    """A handler that is a method, as frameworks have them."""

    calls = 0

    def handle(self, number: int, frame: Any) -> None:
        self.calls += 1
        raise Preempted(number)


def endless(watch: Watch, workers: int, stream: bool = False) -> Iterator[Any]:
    """Batches without end, each loader's anew: openings of iterators are moments too."""
    rows: Any = Rows(400, pause_s=0.0002)
    rows = Stream(rows) if stream else rows
    while True:
        yield from watch(DataLoader(rows, batch_size=4, num_workers=workers))


def arrives(kind: Any, workers: int = 0, stream: bool = False, by_child: bool = False) -> Any:
    """Trains until the signal's exception arrives, and for a little while if it never does."""

    def run(watch: Watch) -> None:
        signal.signal(signal.SIGTERM if by_child else signal.SIGALRM, raising(kind))
        deadline = time.monotonic() + moment() + 2
        try:
            (terminated_by_another if by_child else alarm)(moment())
            for _ in endless(watch, workers, stream):
                if time.monotonic() > deadline:
                    say("arrived", "never")
                    return
        except kind as error:
            say("arrived", [type(error).__name__, list(error.args)])
        helper = sys.modules.get("loaderscope.profiler.guard.helper_thread")
        while helper is not None and helper.is_late():  # opening a run may take seconds
            time.sleep(0.01)
        eat(watch(DataLoader(Rows(), batch_size=4)))  # training goes on, recorded

    return run


def alarm(after: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, after)


def terminated_by_another(after: float) -> None:
    """A child of ours sends it, as a scheduler does."""
    target = os.getpid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        time.sleep(after)
        os.kill(target, signal.SIGTERM)
        os._exit(0)


# How far the loop came when it was interrupted.
_LEFT = ("descriptors", "threads", "children", "active children", "waited for", "shared memory")
_STATES = (f"random state of {name}" for name in ("torch", "numpy", "random"))
_ENDS = (f"end {name}" for name in ("maps", *_STATES, *_LEFT))
BY_CHANCE = ("batches", *_ENDS, "left running", "stderr")

# Judged at many moments, see test_signals_at_moments.py; here at one.
AT_MOMENTS = {
    "alarm": arrives(Preempted),
    "alarm-stream": arrives(Preempted, stream=True),
    "alarm-workers": arrives(Preempted, workers=1),
    "alarm-timeout-error": arrives(TimeoutError),
    "alarm-interrupt": arrives(KeyboardInterrupt),
    "sigterm-exit": arrives(SystemExit, by_child=True),
}
for name, function in AT_MOMENTS.items():
    # A signal may forestall torch's handler of SIGCHLD; Python drops what is raised in its callbacks
    # around a fork. test_signals_at_moments judges both with that in mind.
    unjudged = (*BY_CHANCE, "end handlers", "arrived") if "workers" in name else BY_CHANCE
    how = {"watched": ("watch", "all-pure"), "recorded": False, "unjudged": unjudged}
    program(f"moments/{name}", **how)(function)


@program("signals/method-handler")
def a_method_handles(watch: Watch) -> None:
    manager = Manager()
    signal.signal(signal.SIGALRM, manager.handle)
    batches = endless(watch, 0)
    next(batches)  # recorded, however slow the machine
    alarm(0.02)
    arrived = 0
    deadline = time.monotonic() + 0.5
    while time.monotonic() < deadline:
        try:
            next(batches)
        except Preempted:
            arrived += 1
            alarm(0.02)
            batches = endless(watch, 0)
    alarm(0)
    say("lost", manager.calls - arrived)


@program("signals/counting-handler")
def a_handler_that_only_counts(watch: Watch) -> None:
    """Every tick of a timer runs the handler, and no batch is lost by it."""
    ticks = 0

    def tick(number: int, frame: Any) -> None:
        nonlocal ticks
        ticks += 1

    signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    for _ in range(5):
        eat(watch(DataLoader(Rows(pause_s=0.001), batch_size=4)))
    signal.setitimer(signal.ITIMER_REAL, 0)
    say("ticked", ticks > 50)


@program("signals/wakeup-descriptor")
def signals_by_descriptor(watch: Watch) -> None:
    """As asyncio and servers read them: nothing must be written there that was not sent."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    before = signal.set_wakeup_fd(theirs.fileno())
    signal.signal(signal.SIGUSR1, lambda number, frame: None)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    for count, _ in enumerate(watch(DataLoader(Rows(), batch_size=4))):
        if count % 2:
            os.kill(os.getpid(), signal.SIGUSR1)
    time.sleep(0.3)
    signal.set_wakeup_fd(before)
    ours.setblocking(False)
    say("written", list(ours.recv(100)))


@program("signals/group-stopped")
def the_group_is_stopped(watch: Watch) -> None:
    """As Ctrl-Z and fg: everybody in the group stops and goes on."""
    target = os.getpid()
    stopper = os.fork()
    if stopper == 0:
        os.setpgid(0, 0)
        time.sleep(0.1)
        os.killpg(target, signal.SIGSTOP)
        time.sleep(0.2)
        os.killpg(target, signal.SIGCONT)
        os._exit(0)
    eat(watch(DataLoader(Rows(pause_s=0.02), batch_size=4, num_workers=2)))
    say("stopper", os.waitpid(stopper, 0)[1])


@program("signals/blocked")
def blocked_and_waited_for(watch: Watch) -> None:
    """A program that takes its signals by sigwait must find them pending."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGTERM])
    for count, _ in enumerate(watch(DataLoader(Rows(), batch_size=4))):
        if count == 2:
            os.kill(os.getpid(), signal.SIGUSR1)
    say("taken", signal.sigtimedwait([signal.SIGUSR1], 1).si_signo)  # type: ignore[union-attr]


@program("signals/pipe", watched=("watch", "all"))
def broken_pipe(watch: Watch) -> None:
    """`train.py | head -1`: the next write kills, or raises, as bare."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    reading, writing = os.pipe()
    os.close(reading)
    for count, _ in enumerate(watch(DataLoader(Rows(), batch_size=4))):
        if count == 3:
            os.write(writing, b"x")


def ended_by(number: int, workers: int) -> Callable[[Watch], None]:
    def run(watch: Watch) -> None:
        for count, _ in enumerate(watch(DataLoader(Rows(), batch_size=4, num_workers=workers))):
            if count == 3:
                os.kill(os.getpid(), number)

    return run


program("signals/hung-up")(ended_by(signal.SIGHUP, 1))
program("signals/killed")(ended_by(signal.SIGKILL, 0))


@program("signals/at-the-end")
def handled_at_exit(watch: Watch) -> None:
    """Interrupted in its last moments: atexit functions run, and what interrupts them shows."""
    eat(watch(DataLoader(Rows(), batch_size=4)))
    atexit.register(os.kill, os.getpid(), signal.SIGINT)
