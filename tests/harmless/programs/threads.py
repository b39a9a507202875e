"""Threads, event loops, forks and loaders inside loaders."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import torch
from torch.utils.data import DataLoader

from ..catalogue import Watch, program, say
from ..data import Rows, digest, eat


class Fixed(Rows):
    """Samples that no random state decides: threads share theirs."""

    def __getitem__(self, index: int) -> Any:
        return torch.full((2,), float(index))


def digests(loader: Any) -> list[str]:
    return [digest(batch) for batch in loader]


@program("threads/one-loader")
def one_loader_for_all(watch: Watch) -> None:
    loader = watch(DataLoader(Fixed(400), batch_size=4))
    with ThreadPoolExecutor(4) as pool:
        say("batches", list(map(digest, pool.map(digests, [loader] * 8))))


@program("threads/own-loaders")
def a_loader_each(watch: Watch) -> None:
    def work(number: int) -> str:
        return digest(digests(watch(DataLoader(Fixed(40 + number), batch_size=4))))

    with ThreadPoolExecutor(4) as pool:
        say("batches", list(pool.map(work, range(24))))


@program("threads/with-workers")
def a_thread_each_with_workers(watch: Watch) -> None:
    loaders = [watch(DataLoader(Fixed(), batch_size=4, num_workers=1)) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        say("batches", [digest(found) for found in pool.map(digests, loaders)])


@program("threads/one-iterator")
def one_iterator_for_all(watch: Watch) -> None:
    """Every batch comes to exactly one thread."""
    iterator = iter(watch(DataLoader(Fixed(400), batch_size=4)))
    lock = threading.Lock()
    found: list[str] = []

    def take() -> None:
        while True:
            with lock:
                batch = next(iterator, None)
            if batch is None:
                return
            found.append(digest(batch))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: take(), range(4)))
    say("batches", sorted(found))


# Torch, in a thread that Python stops at its end, may call abort(): seen in bare runs.
@program("threads/daemon-at-exit", unjudged=("status", "stderr"))
def a_daemon_still_loops_at_exit(watch: Watch) -> None:
    def loop() -> None:
        while True:
            digests(watch(DataLoader(Fixed(), batch_size=4)))

    threading.Thread(target=loop, daemon=True).start()
    eat(watch(DataLoader(Fixed(), batch_size=4)))


@program("threads/asyncio")
def in_an_event_loop(watch: Watch) -> None:
    loader = watch(DataLoader(Fixed(), batch_size=4))

    async def one() -> list[str]:
        found = []
        for batch in loader:
            found.append(digest(batch))
            await asyncio.sleep(0)
        return found

    async def both() -> Any:
        return await asyncio.gather(one(), one(), asyncio.to_thread(digests, loader))

    say("batches", [digest(found) for found in asyncio.run(both())])


@program("threads/asyncio-children")
def an_event_loop_waits_for_a_child(watch: Watch) -> None:
    async def both() -> Any:
        child = await asyncio.create_subprocess_exec("false")
        eat(watch(DataLoader(Fixed(), batch_size=4)))
        return await asyncio.wait_for(child.wait(), 5)

    say("child", asyncio.run(both()))


class Nested(Rows):
    def __getitem__(self, index: int) -> Any:
        return sum(int(batch.sum()) for batch in DataLoader(list(range(index + 1)), batch_size=4))


def nested(workers: int) -> Any:
    return lambda watch: eat(watch(DataLoader(Nested(), batch_size=4, num_workers=workers)))


program("nested/in-main")(nested(0))
program("nested/in-workers", watched=("watch", "all"))(nested(2))


@program("nested/in-loop")
def a_loader_in_the_loop(watch: Watch) -> None:
    training, validation = (watch(DataLoader(Rows(size), batch_size=4)) for size in (24, 8))
    for count, batch in enumerate(training):
        say("batch", digest(batch))
        if count % 2:
            eat(validation)


@program("forks/pool")
def in_a_pool(watch: Watch) -> None:
    loader = watch(DataLoader(Fixed(), batch_size=4))
    eat(loader)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        say("batches", [digest(found) for found in pool.map(digests, [loader, loader])])


@program("forks/daemonised")
def a_daemon_trains(watch: Watch) -> None:
    """The parent leaves; the child, in a session of its own, goes on with the loader."""
    loader = watch(DataLoader(Rows(), batch_size=4))
    eat(loader, 2)
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        eat(loader)
        os.write(writing, b".")
        os._exit(0)
    os.close(writing)
    say("done", os.read(reading, 1).decode())
    os.wait()


@program("forks/subprocess")
def starts_programs(watch: Watch) -> None:
    """What they inherit: the environment and descriptors they would have."""
    script = (
        "import os; print(sorted(os.listdir('/proc/self/fd')), sorted(k for k in os.environ if "
        "k[:6] != 'LOADER'))"
    )
    command = [sys.executable, "-S", "-c", script]
    for _ in watch(DataLoader(Rows(8), batch_size=4)):
        for closed in (True, False):
            done = subprocess.run(command, close_fds=closed, capture_output=True, check=True)
            say("inherited", done.stdout.decode())
