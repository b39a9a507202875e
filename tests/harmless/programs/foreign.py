"""Loaders that are no DataLoader: torchdata's nodes, and stand-ins for libraries that are not
installed here, under the names by which those are known."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
from collections.abc import Callable, Iterator
from types import GeneratorType, ModuleType
from typing import Any

import torch
from torchdata.nodes import Batcher, IterableWrapper, Loader, Mapper

from ..catalogue import Watch, program, say
from ..data import digest

WAYS = ("all", "all-pure")


def batches(make: Callable[[int], Any] = float) -> Any:
    return Loader(
        Mapper(Batcher(Mapper(IterableWrapper(range(24)), make), batch_size=4), torch.tensor)
    )


@program("foreign/nodes-epochs", watched=WAYS)
def epochs(watch: Watch) -> None:
    torch.manual_seed(3)
    loader = batches()
    for _ in range(2):
        say("batches", digest(list(loader)))
    say("random numbers after it", torch.rand(2).tolist())
    say("loader", type(loader).__name__, sorted(vars(loader)))


@program("foreign/nodes-resumed", watched=WAYS)
def resumed(watch: Watch) -> None:
    """Left in the middle, saved, gone on with in another one."""
    first, second = batches(), batches()
    iterator = iter(first)
    say("begun", digest([next(iterator), next(iterator)]))
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    say("gone on with", digest(list(second)), digest(list(iterator)))


def bad(number: int) -> float:
    if number == 13:
        raise LookupError("no such sample")
    return float(number)


@program("foreign/nodes-error", watched=WAYS)
def error(watch: Watch) -> None:
    iterator, found = iter(batches(bad)), []
    for _ in range(6):
        try:
            found.append(next(iterator))
        except Exception as caught:
            say("error", type(caught).__name__, str(caught).splitlines()[-1])
            break
    say("until then", digest(found))


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


def known_as(module: str, name: str, cls: type) -> None:
    """As if that library were installed, and had been imported."""
    made = ModuleType(module)
    cls.__module__, cls.__name__, cls.__qualname__ = module, name, name
    setattr(made, name, cls)
    sys.modules[module] = made


known_as("fastai.data.load", "DataLoader", Loading)


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
    say("a generator", hasattr(iterator, "send"), isinstance(iterator, GeneratorType), len(loader))
    iterator.close()
    say("closed", loader.closed, next(iterator, "ended"))
    say("the whole", digest(list(loader)), sorted(vars(loader)))
    say("a copy", digest(list(copy.copy(loader))), pickle.loads(pickle.dumps(loader)).closed)
