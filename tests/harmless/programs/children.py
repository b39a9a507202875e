"""Who waits for children, by whatever way, meets his own only."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import threading
import time
from typing import Any

import psutil
from torch.utils.data import DataLoader

from ..catalogue import DECIDES, RESTLESS, Watch, program, say
from ..data import N, Rows, eat
from ..preparing import prepare


def small(watch: Watch, workers: int = 0, pause_s: float = 0.0, rows: int = N) -> Any:
    return watch(DataLoader(Rows(rows, pause_s), batch_size=4, num_workers=workers))


def wait_for_all() -> list[int]:
    """A supervisor's and a shell's habit: until nobody is left."""
    statuses = []
    while True:
        try:
            statuses.append(os.wait()[1])
        except ChildProcessError:
            return statuses


def declare_waiting(prepared: str, name: str) -> None:
    for workers in (0, 2):

        def trains_and_waits(watch: Watch, workers: int = workers) -> None:
            eat(small(watch, workers))
            say("waited for", wait_for_all())

        program(f"children/{name}-waits-{workers}", prepared=prepared)(trains_and_waits)

    def lets_them_be(watch: Watch) -> None:
        eat(small(watch))
        time.sleep(0.5)
        seen = psutil.Process().children(recursive=True)
        say("children", [child.name() for child in seen])
        say("zombies", sum(1 for child in seen if child.status() == psutil.STATUS_ZOMBIE))

    program(f"children/{name}-looks", prepared=prepared)(lets_them_be)

    def adopts(watch: Watch) -> None:
        """A grandchild whose parent ends comes to the reaper: exactly that one."""
        eat(small(watch))
        child = os.fork()
        if child == 0:
            if os.fork() == 0:
                time.sleep(0.1)
                os._exit(4)
            os._exit(5)
        say("waited for", sorted(wait_for_all()))

    program(f"children/{name}-adopts", prepared=prepared)(adopts)


declare_waiting("first process", "pid1")
declare_waiting("subreaper", "subreaper")
declare_waiting("", "plain")


def trains(watch: Watch) -> None:
    eat(small(watch))
    time.sleep(0.3)


program("children/sigchld-handler", counts_sigchld=True)(trains)


@program("children/sigchld-reaper", watched=("watch", "all"))
def reaps_in_a_handler(watch: Watch) -> None:
    """As servers do: every SIGCHLD reaps whoever has ended."""
    reaped: list[int] = []

    def reap(number: int, frame: Any) -> None:
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                reaped.append(found[1])

    signal.signal(signal.SIGCHLD, reap)
    eat(small(watch))
    # Long enough to be waited for before it ends: else it is chance who reaps it.
    subprocess.run(["sleep", "0.3"], check=False)
    time.sleep(0.3)
    say("reaped", len(reaped))


@program("children/sigchld-ignored")
def ignores_children(watch: Watch) -> None:
    """The kernel reaps then, and every wait of a library's own fails."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    trains(watch)


@program("children/sigchld-blocked")
def blocks_and_takes(watch: Watch) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    trains(watch)
    say("pending", signal.SIGCHLD in signal.sigpending())


@program("children/wait-thread")
def waits_in_a_thread(watch: Watch) -> None:
    found: list[int] = []
    stop = threading.Event()

    def collect() -> None:
        while not stop.is_set():
            with contextlib.suppress(ChildProcessError):
                pid, _ = os.waitpid(-1, os.WNOHANG)
                found.extend([pid] if pid else [])
            time.sleep(0.001)

    thread = threading.Thread(target=collect)
    thread.start()
    eat(small(watch, pause_s=0.005))
    stop.set()
    thread.join()
    say("collected", len(found))


@program("children/active-children")
def asks_multiprocessing(watch: Watch) -> None:
    for count, _ in enumerate(small(watch, workers=2)):
        if count == 1:
            active = multiprocessing.active_children()
            say("active", sorted(type(child).__name__ for child in active))
            say("children", [child.name() for child in psutil.Process().children(recursive=True)])


@program("children/supervised")
def a_supervisor_waits_for_all(watch: Watch) -> None:
    """The training is a child of a subreaper that waits until nobody is left."""
    say("prepared", prepare("subreaper", "."))
    trainer = os.fork()
    if trainer == 0:
        eat(small(watch, workers=1))
        os._exit(0)
    say("waited for", wait_for_all())


@program("children/group-is-ended", recorded=True)
def the_group_is_terminated(watch: Watch) -> None:
    """As systemd ends a service: everybody in the group at once, workers too."""

    def ended(number: int, frame: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise SystemExit(143)

    signal.signal(signal.SIGTERM, ended)
    for count, _ in enumerate(small(watch)):
        if count == 3:
            os.killpg(0, signal.SIGTERM)


@program("children/group-ctrl-c", unjudged=("stderr", "error"))
def the_group_is_interrupted(watch: Watch) -> None:
    try:
        for count, _ in enumerate(small(watch, workers=2)):
            if count == 3:
                os.killpg(0, signal.SIGINT)
                time.sleep(1)
    except KeyboardInterrupt:
        say("interrupted", True)


@program("children/waits-for-any-tuned", watched=(RESTLESS, DECIDES))
def waits_for_any(watch: Watch) -> None:
    """It waits for its own children, until there is none, while its loader could be tuned."""
    for number, _ in enumerate(small(watch, 0, 0.001, 400)):
        if number % 40 == 20:
            if os.fork() == 0:
                os._exit(0)
            say("ended", [number, wait_for_all()])
