"""Every change that objects' code could see is found, and none of their code runs."""

import collections
import csv
import functools
import io
import itertools
import logging
import multiprocessing
import os
import random
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from loaderscope.tuning.evidence.state import FAR, State

LEVEL, TABLE = 1, {"a": [1]}


def scaled(value: int) -> int:
    return value * LEVEL + len(TABLE["a"])


class Scale:
    __slots__ = ("by", "unset")

    def __init__(self) -> None:
        self.by = 1

    def __call__(self, value: int) -> int:
        return value * self.by


Marked = type("Marked", (torch.Tensor,), {})


class Data:
    rate = 1
    shared: list[int] = []  # noqa: RUF012  of all of them

    def __init__(self) -> None:
        level = 1

        def read(index: int, *, extra: list[int] = [1]) -> int:  # noqa: B006
            return index * level + extra[0]

        def deeper() -> None:
            nonlocal level
            level += 1

        self.read, self.deeper = read, deeper
        self.count, self.name = 1000, "data"
        self.scale, self.transforms = Scale(), [Scale(), partial(scaled, value=[3])]
        self.few, self.many = [1, 2], list(range(3000))
        self.nested = [{"label": k, "box": [k]} for k in range(400)]
        self.table = {k: [k] for k in range(1000)}
        self.set, self.queue = {1, 2}, collections.deque([1])
        self.array, self.large = np.zeros(10), np.zeros((300, 1000))
        self.strided = np.zeros((10, 10))[:, ::2]
        self.tensor, self.half = torch.zeros(10), torch.zeros(4, dtype=torch.bfloat16)
        self.weights = [torch.nn.Parameter(torch.zeros(2)), Marked(torch.zeros(2))]
        self.scalar, self.bytes = torch.tensor(1.0), bytearray(b"abc")
        self.frame = pd.DataFrame({"a": [1.0, 2.0], "b": [1, 2]})
        self.draws = [torch.Generator(), random.Random(1)]
        self.draws += [np.random.default_rng(1), np.random.RandomState(1)]

    def __getitem__(self, index: int) -> Any:
        held = self.read(index), self.rate, self.shared
        return *held, scaled(index), os.environ.get("SOME"), self.inner(index)

    def inner(self, index: int) -> int:
        return index * OTHER


OTHER = 1


def set_global(name: str) -> Callable[[Data], Any]:
    return lambda data: globals().__setitem__(name, globals()[name] + 1)


CHANGES: dict[str, tuple[Callable[[Data], Any], str]] = {
    "an attribute": (lambda d: setattr(d, "count", 1001), "Data.count"),
    "a new attribute": (lambda d: setattr(d, "more", 1), "Data.more"),
    "an attribute that goes": (lambda d: delattr(d, "name"), "Data.name"),
    "a slot": (lambda d: setattr(d.scale, "by", 2), "Scale.by"),
    "a slot that was unset": (lambda d: setattr(d.scale, "unset", 2), "Scale.unset"),
    "of a partial": (lambda d: d.transforms[1].keywords["value"].append(4), "Data.transforms"),
    "an item appended": (lambda d: d.many.append(1), "Data.many"),
    "one item of many": (lambda d: d.many.__setitem__(2800, -1), "Data.many"),
    "a dict of many": (lambda d: d.nested[333].__setitem__("label", -1), "Data.nested"),
    "a list in a dict of many": (lambda d: d.nested[350]["box"].append(-1), "Data.nested"),
    "a list in a large dict": (lambda d: d.table[900].append(1), "Data.table"),
    "a value of a large dict": (lambda d: d.table.__setitem__(900, 1), "Data.table"),
    "a set": (lambda d: d.set.add(3), "Data.set"),
    "a deque": (lambda d: d.queue.append(3), "Data.queue"),
    "an array": (lambda d: d.array.__setitem__(9, 1), "Data.array"),
    "a large array": (lambda d: d.large.__setitem__((299, 999), 1), "Data.large"),
    "a view with gaps": (lambda d: d.strided.__setitem__((9, 4), 1), "Data.strided"),
    "a tensor": (lambda d: d.tensor.__setitem__(9, 1), "Data.tensor"),
    "a parameter": (lambda d: d.weights[0].data.add_(1), "Data.weights"),
    "a tensor of a subclass": (lambda d: d.weights[1].add_(1), "Data.weights"),
    "a tensor through NumPy": (lambda d: d.tensor.numpy().__setitem__(9, 1), "Data.tensor"),
    "a tensor of bfloat16": (lambda d: d.half.data.fill_(3), "Data.half"),
    "a tensor without dimensions": (lambda d: d.scalar.data.fill_(3), "Data.scalar"),
    "bytes": (lambda d: d.bytes.__setitem__(0, 0), "Data.bytes"),
    "a data frame": (lambda d: d.frame._mgr.arrays[0].__setitem__((0, 0), 9.0), "Data.frame"),
    "a generator of torch": (lambda d: torch.rand(1, generator=d.draws[0]), "Data.draws"),
    "a generator of Python": (lambda d: d.draws[1].random(), "Data.draws"),
    "a generator of NumPy": (lambda d: d.draws[2].random(), "Data.draws"),
    "an older generator of NumPy": (lambda d: d.draws[3].rand(), "Data.draws"),
    "a class attribute": (lambda d: setattr(Data, "rate", Data.rate + 1), "Data.rate"),
    "a list of the class": (lambda d: d.shared.append(1), "Data.shared"),
    "a global of a function it calls": (set_global("LEVEL"), "the global LEVEL"),
    "a global of a method it calls": (set_global("OTHER"), "the global OTHER"),
    "a list in a global": (lambda d: TABLE["a"].append(1), "the global TABLE"),
    "a closure": (lambda d: d.deeper(), "the variable level"),
    "a default": (lambda d: d.read.__kwdefaults__["extra"].append(1), "Data.read"),
    "the environment": (lambda d: os.environ.__setitem__("SOME", "y"), "the environment"),
}


def looked_at() -> tuple[Data, State]:
    data = Data()
    return data, State({"the data set": data})


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_found_and_named(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME", "x")
    data, state = looked_at()
    assert state.complete and state.changed(full=True) is None
    assert not state.obstacles and not state.fork_obstacles
    make, name = CHANGES[change]
    make(data)
    assert state.changed(full=True) == name
    assert state.again().changed(full=True) is None


def test_what_is_near_is_compared_each_time_and_what_is_far_in_turns() -> None:
    data, state = looked_at()
    data.count = 1
    assert state.changed() == "Data.count"
    state = state.again()
    assert state.changed(full=True) is None
    data.large[100] = 1
    assert state.changed() is None and "Data.large" in state.large
    found = None
    for _ in range(1000):
        found = found or state.changed(within_ns=20_000)
    assert found == "Data.large"
    data, state = looked_at()
    data.count, data.name = int("1000"), "".join(["da", "ta"])
    data.few[0] = int("1")
    assert state.changed(full=True) is None


def ran(*_: Any) -> Any:
    raise AssertionError("its code was run")


class Strange:
    def __init__(self) -> None:
        self.itself = [self]

    __getattribute__ = __eq__ = __len__ = __iter__ = ran
    __hash__ = None  # type: ignore[assignment]


class StrangeList(list[int]):
    __len__ = __iter__ = __getitem__ = ran


def test_no_code_of_the_objects_runs() -> None:
    data = Data()
    data.few = [Strange(), StrangeList([1])]
    data.queue = {"a": Strange()}  # type: ignore[assignment]
    state = State({"the data set": data})
    data.few[0] = Strange()
    assert state.changed(full=True) == "Data.few"


def test_more_than_can_be_looked_at_is_said() -> None:
    data = Data()
    data.nested = [{"a": k} for k in range(FAR + 10)]
    assert not State({"the data set": data}).complete
    assert State({"the data set": data}, without=[data.nested]).complete


class Printing:
    def __getitem__(self, index: int) -> int:
        return self.told(index)

    def told(self, index: int) -> int:
        print(index)
        return index


class Holding:
    def __init__(self, held: Any) -> None:
        self.held = held

    def __getitem__(self, index: int) -> Any:
        return self.held


def generating() -> Any:
    yield 1


def begun_pool() -> ThreadPoolExecutor:
    pool = ThreadPoolExecutor(1)
    pool.submit(int).result()
    return pool


FORK = multiprocessing.get_context("fork")
OBSTACLES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "prints": (lambda folder: Printing(), "Printing.told prints"),
    "a file to write": (lambda folder: Holding((folder / "a").open("w")), "may write"),
    "an unbuffered one": (lambda folder: Holding((folder / "a").open("ab", 0)), "may write"),
    "one for both": (lambda folder: Holding((folder / "a").open("w+b")), "may write"),
    "an iterator": (lambda folder: Holding(iter([1])), "Holding.held is an iterator"),
    "a generator": (lambda folder: Holding(generating()), "iterator"),
    "a count": (lambda folder: Holding(itertools.count()), "iterator"),
    "rows of a CSV file": (lambda folder: Holding(csv.reader(io.StringIO("a"))), "iterator"),
    "a shared value": (lambda folder: Holding(FORK.Value("i", 0)), "shared with other processes"),
    "a queue": (lambda folder: Holding(FORK.Queue()), "shared with other processes"),
}
TO_FORKS = {
    "SQLite": (lambda folder: Holding(sqlite3.connect(folder / "b")), "SQLite"),
    "threads": (lambda folder: Holding(begun_pool()), "threads"),
    "a thread": (lambda folder: Holding(threading.current_thread()), "threads"),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("what", [*OBSTACLES, *TO_FORKS])
def test_what_no_other_process_could_have(what: str, tmp_path: Path) -> None:
    make, words = {**OBSTACLES, **TO_FORKS}[what]
    state = State({"the data set": (held := make(tmp_path))})
    found = [state.obstacles, state.fork_obstacles]
    others = found.pop(what not in TO_FORKS)
    assert any(words in each for each in found[0]) and not others
    if what == "SQLite":
        held.held.close()  # or Python 3.13 and later warn in another test


def test_what_any_process_can_have_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("text")
    with (tmp_path / "a").open() as text, (tmp_path / "a").open("rb") as read:
        held = [text, read, ThreadPoolExecutor(1), logging.getLogger("some"), FORK.Lock()]
        with (tmp_path / "b").open("w") as closed:
            held += [closed, io.BytesIO(b"a")]
        state = State({"the data set": Holding(held)})
        assert not state.obstacles and not state.fork_obstacles


@functools.cache
def made_files() -> str:
    with open(os.devnull, "w") as file:
        file.write("made")
    return os.devnull


@functools.cache
def kept_for(index: int) -> int:
    with open(os.devnull, "w") as file:
        file.write("made")
    return index


@pytest.mark.parametrize("items", [100, 10_000_000], ids=["near", "far"])
def test_a_tensor_that_moves_is_followed(items: int) -> None:
    """Pickling it for a process that is not forked frees the memory that it was in."""
    held = [torch.zeros(items, dtype=torch.uint8)]
    state = State({"rows": held})
    assert state.changed(full=True) is None
    ForkingPickler.dumps(held)
    assert held[0].is_shared() and state.changed(full=True) is None
    assert state.aliases(held[0].data_ptr() + items - 1, 1)
    assert not state.aliases(torch.zeros(1000).data_ptr(), 8)
    held[0].numpy()[-1] = 1
    assert state.changed(full=True) == "rows"


def test_a_bytearray_that_is_compared_can_grow() -> None:
    held = [bytearray(10), bytearray(1_000_000)]
    state = State({"rows": held})
    assert state.changed(full=True) is None
    for each in held:
        each.extend(b"more")
    assert state.changed(full=True) == "rows"


def test_a_function_that_ran_once_and_for_all_writes_no_more() -> None:
    made_files.cache_clear()
    holding = Holding(lambda index: (made_files(), index))
    assert State({"the data set": holding}).writes == "made_files may write to a file"
    made_files()
    assert State({"the data set": holding}).writes is None
    kept_for(1)  # runs again for another argument
    assert State({"the data set": Holding(kept_for)}).writes == "kept_for may write to a file"
    assert State({"the data set": Data()}).writes is None
