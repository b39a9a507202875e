"""Batches as values: equal digests, and only then, equal batches."""

from __future__ import annotations

import copy
import itertools
import threading
from collections import OrderedDict, UserDict, namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from loaderscope.tuning.evidence.batches import digest, memory_of, tensors_of, views, why_not_sent
from loaderscope.tuning.evidence.state import State


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
