"""Loaders as people make them, beyond the kinds of `table`, and what people do with a loader; loaders
that are no DataLoader."""

from __future__ import annotations

import copy
import gc
import pickle
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import GeneratorType, ModuleType
from typing import Any

import numpy as np
import torch
from torch.utils.data import ConcatDataset, DataLoader, Subset
from torchdata.nodes import Batcher, IterableWrapper, Loader, Mapper

from ..catalogue import Watch, program, say, still
from ..data import KINDS, N, Rows, Stream, Whole, digest, eat
from .table import caught


class TwoByTwo:
    def __iter__(self) -> Any:
        return iter([(i, i + 1) for i in range(0, N, 2)])


class Shuffled:
    def __iter__(self) -> Any:
        return iter(torch.randperm(N).tolist())

    def __len__(self) -> int:
        return N


class Slow(Rows):
    def __init__(self, index: int, seconds: float) -> None:
        super().__init__()
        self.slow, self.seconds = index, seconds

    def __getitem__(self, index: int) -> Any:
        time.sleep(self.seconds if index == self.slow else 0)
        return index


class Lost(Rows):
    """Torch words an error of this type in its own way."""

    def __getitem__(self, index: int) -> Any:
        raise KeyError("lost") if index == N // 2 else OSError(5, "I/O")


class Chain:
    def __init__(self, *steps: Callable[[Any], Any]) -> None:
        self.steps = list(steps)

    def __call__(self, value: Any) -> Any:
        for step in self.steps:
            value = step(value)
        return value


def noise(value: Any) -> Any:
    return value + (1 if still() else torch.rand(1) + random.random())


def fail_at_half(value: Any) -> Any:
    if value.numel() == N // 2:
        raise ValueError("cannot be transformed")
    return value


class Transformed(Rows):
    """Reads a file, and hands it to a chain of callables; long enough to be looked at."""

    def __init__(self, last: Callable[[Any], Any]) -> None:
        super().__init__()
        self.transform = Chain(noise, last, noise)

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.0005)
        with open(__file__, "rb") as file:
            return self.transform(torch.full((index,), float(len(file.read()))))


def seed_worker(worker: int) -> None:
    np.random.seed(worker + torch.initial_seed() % 1000)


def given(dataset: Any, batch_size: int = 4, **more: Any) -> dict[str, Any]:
    return {"dataset": dataset, "batch_size": batch_size, **more}


# Arguments of the loader, without its workers; whether its settings may be changed in mid-epoch.
LOADERS: dict[str, tuple[Callable[[], dict[str, Any]], bool]] = {
    "pairs": (lambda: given(Rows(), 1, batch_sampler=TwoByTwo()), True),
    "own-sampler": (lambda: given(Rows(), sampler=Shuffled()), True),
    "stream-drop-last": (lambda: given(Stream(Rows()), 5, drop_last=True), False),
    "subset": (lambda: given(Subset(Whole(), [3, 1, 4, 1, 5]), 2), True),
    "concat": (lambda: given(ConcatDataset([Rows(), Whole()]), 6), True),
    "lost": (lambda: given(Lost(), shuffle=True), True),
    "transformed": (lambda: given(Transformed(torch.neg), 1), True),
    "transform-fails": (lambda: given(Transformed(fail_at_half), 1), True),
}


def declare(name: str, make: Callable[[], dict[str, Any]], workers: int, **how: Any) -> None:
    def run(watch: Watch) -> None:
        ahead = {"prefetch_factor": 1} if workers else {}
        loader = watch(DataLoader(**ahead, **make(), num_workers=workers))
        for _ in range(2):
            caught(lambda: eat(loader))

    program(f"loaders/{name}-{workers}", recorded="lost" not in name, **how)(run)


for name, (make, tuned) in LOADERS.items():
    # Of two workers that fail, it is chance whose error comes first.
    for workers in (0, 1 if "fails" in name or "lost" in name else 2):
        declare(name, make, workers, tuned=tuned)
declare("worker-init", lambda: given(Rows(), worker_init_fn=seed_worker), 2)


@program("loaders/times-out-1")
def times_out(watch: Watch) -> None:
    loader = DataLoader(Slow(N // 2, 4), batch_size=4, num_workers=1, timeout=1)
    caught(lambda: eat(watch(loader)))


@program("loaders/out-of-order-2")
def out_of_order(watch: Watch) -> None:
    loader = watch(DataLoader(Slow(0, 0.3), batch_size=4, num_workers=2, in_order=False))
    say("batches", sorted(digest(batch) for batch in loader))


@program("loaders/with-itself-0", tuned=True)
def with_itself(watch: Watch) -> None:
    loader = watch(DataLoader(Rows(), batch_size=4, shuffle=True))
    say("pairs", [[digest(a), digest(b)] for a, b in zip(loader, loader, strict=True)])


@program("loaders/handed-to-a-thread-1", tuned=True)
def handed_to_a_thread(watch: Watch) -> None:
    iterator = iter(watch(DataLoader(Rows(), batch_size=4, num_workers=1)))
    say("first", digest(next(iterator)))
    thread = threading.Thread(target=eat, args=(iterator,))
    thread.start()
    thread.join()


@program("loaders/made-again-0", tuned=True)
def made_again(watch: Watch) -> None:
    """As frameworks do: another loader of the same arguments."""
    loader = watch(DataLoader(Rows(), batch_size=4))
    names = ("dataset", "batch_size", "num_workers", "collate_fn")
    eat(type(loader)(**{name: getattr(loader, name) for name in names}))
    eat(loader)


def resumed(workers: int) -> Callable[[Watch], None]:
    def run(watch: Watch) -> None:
        loader, again = (watch(KINDS["stateful"](Rows(), num_workers=workers)) for _ in range(2))
        iterator = iter(loader)
        say("first", [digest(next(iterator)) for _ in range(2)])
        state = loader.state_dict()
        say("state", sorted(state))
        again.load_state_dict(state)
        for each in (iterator, again, loader):
            eat(each)

    return run


for workers in (0, 2):
    program(f"loaders/resumed-{workers}")(resumed(workers))


@program("loaders/no-loader-0", watched=("watch", "watch-pure"))
def no_loader(watch: Watch) -> None:
    for batches in ([torch.ones(2) * i for i in range(5)], (torch.ones(2) * i for i in range(5))):
        watched = watch(batches)
        eat(watched)
        eat(watched)


# Torchdata's nodes, and a stand-in for a library, under the name by which it is known.
WAYS = ("all", "all-pure")


def batches(make: Callable[[int], Any] = float) -> Any:
    rows = Mapper(IterableWrapper(range(24)), make)
    return Loader(Mapper(Batcher(rows, batch_size=4), torch.tensor))


@program("foreign/nodes-epochs", watched=WAYS)
def epochs(watch: Watch) -> None:
    torch.manual_seed(3)
    loader = batches()
    for _ in range(2):
        say("batches", digest(list(loader)))
    say("random numbers after it", torch.rand(2).tolist())
    say("loader", [type(loader).__name__, sorted(vars(loader))])


@program("foreign/nodes-resumed", watched=WAYS)
def nodes_resumed(watch: Watch) -> None:
    first, second = batches(), batches()
    iterator = iter(first)
    say("begun", digest([next(iterator), next(iterator)]))
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    say("gone on with", [digest(list(second)), digest(list(iterator))])


def bad(number: int) -> float:
    if number == 13:
        raise LookupError("no such sample")
    return float(number)


@program("foreign/nodes-error", watched=WAYS)
def error(watch: Watch) -> None:
    try:
        for batch in batches(bad):
            say("batch", digest(batch))
    except Exception as caught:
        say("error", [type(caught).__name__, str(caught).splitlines()[-1]])


class Loading:
    """As fastai's: each iteration is a generator."""

    def __init__(self) -> None:
        self.closed = 0

    def __iter__(self) -> Iterator[torch.Tensor]:
        try:
            for number in range(40):
                yield torch.full((2,), float(number))
        finally:
            self.closed += 1

    def __len__(self) -> int:
        return 40


# As if that library were installed, and had been imported.
FASTAI: Any = ModuleType("fastai.data.load")
Loading.__module__, Loading.__name__, Loading.__qualname__ = FASTAI.__name__, *("DataLoader",) * 2
FASTAI.DataLoader = Loading
sys.modules[FASTAI.__name__] = FASTAI


@program("foreign/generator-left", watched=WAYS)
def left(watch: Watch) -> None:
    """Its `finally` is reached when the loop is left, and no earlier."""
    loader = Loading()
    for number, _ in enumerate(loader):
        if number == 20:
            say("before", loader.closed)
            break
    gc.collect()
    say("after", loader.closed)
    iterator: Any = iter(loader)
    next(iterator)
    kind = [hasattr(iterator, "send"), isinstance(iterator, GeneratorType)]
    say("a generator", [*kind, len(loader)])
    iterator.close()
    say("closed", [loader.closed, next(iterator, "ended")])
    say("the whole", [digest(list(loader)), sorted(vars(loader))])
    say("a copy", [digest(list(copy.copy(loader))), pickle.loads(pickle.dumps(loader)).closed])
