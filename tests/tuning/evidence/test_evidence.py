"""Looks at what may change; batches as values, random numbers drawn, what sources write to."""

import copy
import itertools
import random
import threading
from collections import OrderedDict, UserDict, namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, RandomSampler, Sampler, SequentialSampler, TensorDataset

from loaderscope.tuning.evidence import program
from loaderscope.tuning.evidence.batches import digest, memory_of, tensors_of, views, why_not_sent
from loaderscope.tuning.evidence.evidence import Evidence
from loaderscope.tuning.evidence.settings import settings_of
from loaderscope.tuning.evidence.state import State
from loaderscope.tuning.evidence.streams import Streams, epoch_seed, numbered_seed
from switch_data import Rows

BATCHES, STEP_NS, LOOK_NS = 4000, 1_000_000, 5_000


class Clock:
    """Each reading takes a part of a look."""

    now = 0

    def __call__(self) -> int:
        self.now += LOOK_NS // 2
        return self.now


class OwnSampler(Sampler[int]):
    def __init__(self, data: TensorDataset) -> None:
        self.data = data

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data)))


@pytest.mark.parametrize(
    ("own", "other", "sampler", "most"),
    [
        (0, 2, SequentialSampler, 1.0),  # the loop may change the next batch
        (2, 0, SequentialSampler, 1.0),
        (2, 3, OwnSampler, 0.15),  # whose indices are drawn on time
        (2, 3, SequentialSampler, 0.15),  # no batch before the next epoch
    ],
)
def test_what_no_batch_of_the_epoch_depends_on_is_looked_at_seldom(own, other, sampler, most):
    data = TensorDataset(torch.arange(64))
    loader = DataLoader(data, 4, sampler=sampler(data), num_workers=own)
    clock = Clock()
    evidence = Evidence(loader, clock=clock)
    evidence.epoch_begins(loader, settings_of(loader))
    iterator = SimpleNamespace(_num_workers=other, _dataset_fetcher=None)
    looked = 0
    for _ in range(BATCHES):
        clock.now += STEP_NS
        evidence.asked(False, iterator)
        looked += evidence._looking
    assert BATCHES * most * 0.5 < looked <= BATCHES * most


DRAWN = partial(RandomSampler, generator=torch.Generator())


@pytest.mark.parametrize(
    ("sampler", "first", "then"),
    [
        (SequentialSampler, True, True),
        (RandomSampler, True, True),
        (DRAWN, False, True),
        (partial(DRAWN, num_samples=99), False, False),
        (partial(DRAWN, replacement=True), False, False),
        (OwnSampler, False, False),
    ],
)
def test_indices_are_drawn_early_where_nothing_notices(sampler, first, then):
    """The end of an epoch moves a generator that the program has."""
    data = TensorDataset(torch.arange(64))
    evidence = Evidence(DataLoader(data, 4, sampler=sampler(data)))
    assert evidence.draws_early(0) == first
    evidence.epoch_ends(16)
    assert evidence.draws_early(14) == then
    assert evidence.draws_early(15) == (then and evidence.draws_early(99)) == first


DRAWS: dict[str, Callable[[], Any]] = {
    "torch": lambda: torch.rand(1),
    "Python": random.random,
    "Python, half a pair of normal numbers": lambda: random.gauss(0, 1),
    "NumPy": np.random.rand,
    "NumPy, half a pair of normal numbers": np.random.randn,
    "NumPy, integers": lambda: np.random.randint(5),
}


@pytest.mark.parametrize("kind", DRAWS)
def test_a_draw_is_seen_and_put_back(kind: str) -> None:
    streams, draw = Streams(), DRAWS[kind]
    for _ in range(3):  # with and without half a pair left over
        before = streams.look()
        assert streams.look() == before
        first = [draw() for _ in range(3)]
        assert streams.look() != before
        streams.put_back(before)
        assert streams.look() == before and [draw() for _ in range(3)] == first


def test_a_generator_put_in_numpy_s_place_is_looked_at_too() -> None:
    before = np.random.get_bit_generator()
    streams = Streams()
    streams.look()
    try:
        np.random.set_bit_generator(np.random.PCG64(5))
        look = streams.look()
        assert streams.look() == look
        np.random.rand()
        assert streams.look() != look
    finally:
        np.random.set_bit_generator(before)


def test_seeds_are_torch_s_and_further_ones_come_from_nobody_s_stream() -> None:
    for generator in (None, torch.Generator().manual_seed(3)):
        torch.manual_seed(1)
        seed = iter(DataLoader(Rows(4), num_workers=0, generator=generator))._base_seed
        after = (generator or torch.default_generator).get_state()
        torch.manual_seed(1)
        if generator is not None:
            generator.manual_seed(3)
        assert epoch_seed(DataLoader(Rows(4), generator=generator)) == seed
        assert (generator or torch.default_generator).get_state().equal(after)
    torch.manual_seed(1)
    before, loader = Streams().look(), DataLoader(Rows(4))
    seeds = [numbered_seed(loader, number) for number in range(100)]
    assert len({*seeds}) == 100
    assert seeds == [numbered_seed(loader, number) for number in range(100)]
    assert Streams().look() == before


SOURCE = """
import numpy as np

class Data:
    def __init__(self):
        self.built = np.zeros(9)
        self.built[0] = 1

    def update(self, where, value):
        self.labels[where] = value

data = Data()
view = data.tensor.numpy()
noisy = data.targets

def after(step):
    view[:256] += 0.5

def relabel(array, where):
    array[where] = 1

def main():
    relabel(data.marks, 3)
    relabel(array=data.named, where=4)
    for each in noisy:
        pass
    Data.stay(data.read)
    small = data.pictures[0].resize(64)
    data.grown.resize(64)

def stay(it):
    return it[0]
"""


# A view that the function finds in its module; a function's argument, twice.
WRITTEN = {"labels": 10, "tensor": 17, "marks": 20, "named": 20, "grown": 29}
# A constructor's own, and what is made anew, are not written in place.
LEFT = ("targets", "built", "read", "pictures")


def test_what_is_written_in_place(tmp_path, monkeypatch):
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    monkeypatch.setattr(program, "files", lambda: [path])
    found = {name: program.written_in_place(name) for name in (*WRITTEN, *LEFT)}
    lines = {name: f"train.py:{line}" for name, line in WRITTEN.items()}
    assert found == {**dict.fromkeys(LEFT), **lines}


@dataclass
class Boxes:
    corners: Any
    name: str = "a"


Pair = namedtuple("Pair", ["left", "right"])
ALONE: list[Any] = [None, 0, 0.0, False, "", "0", b"0", np.float32(0)]
HELD = [[], (), {}, [0], (0,), [[0]], [0, 0], {"a": 0}, {"a": 1}, {"b": 0}, Pair(0, 0)]
KINDS = [torch.int32, torch.bfloat16, torch.float32]
TENSORS = [torch.zeros(0), torch.zeros(2, 1), *(torch.zeros(2, dtype=kind) for kind in KINDS)]
TENSORS += [torch.tensor([0.0, -0.0]), torch.tensor([0.0, float("nan")])]
ARRAYS = [np.zeros(2), np.zeros(2, np.float32), *(np.array([a, None], object) for a in "ab")]
BOXES = [Boxes(torch.zeros(1)), Boxes(torch.ones(1)), Boxes(torch.zeros(1), "b")]
NESTED = [[torch.zeros(1), [torch.zeros(1)]], OrderedDict(a=0), UserDict(a=0)]
DIFFERENT = [*ALONE, *HELD, *TENSORS, *ARRAYS, *BOXES, *NESTED]


def test_only_equal_batches_have_equal_digests() -> None:
    assert all(digest(each) == digest(copy.deepcopy(each)) for each in DIFFERENT)
    for one, other in itertools.combinations(DIFFERENT, 2):
        assert digest(one) != digest(other), (one, other)
    table = torch.arange(12.0).reshape(3, 4)
    assert digest(table.T) == digest(table.T.contiguous())
    assert digest(table[:, ::2]) == digest(table[:, ::2].clone())


def test_views_of_the_data_are_told_from_copies() -> None:
    data, array = torch.arange(100.0), np.arange(100.0)
    state = State({"the data set": [data, array]})
    assert views({"a": [data[3:5]]}, state) and views([torch.from_numpy(array)[9:]], state)
    assert not views([data[3:5].clone(), torch.from_numpy(array[9:].copy()), data.sum()], state)
    memory = memory_of(data[3:5])
    assert memory is not None and memory[1:] == (400, 8)
    assert len(list(tensors_of([data, OrderedDict(a=data), ["text"]]))) == 2


def test_what_a_worker_could_not_send() -> None:
    weights = torch.ones(1, requires_grad=True)
    assert why_not_sent([torch.ones(2), {"a": ("text", 3)}, Boxes(1), np.zeros(2), weights]) is None
    assert "a tensor with a history" in str(why_not_sent([{"a": weights * 2}]))
    hidden = namedtuple("hidden", ["rows"])(torch.ones(2))
    for value in (threading.Lock(), lambda: 0, (each for each in [1]), hidden):
        assert "cannot be pickled" in str(why_not_sent([torch.ones(1), Boxes(value)]))
    assert "its batches hold a hidden that" in str(why_not_sent({"a": [hidden]}))
