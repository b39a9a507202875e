"""Trying the batched form on loaders at hand."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, Subset, TensorDataset

from loaderscope.advisors.assemble.probe import probe_loader, same_batch
from loaderscope.advisors.case.probe_result import GETITEMS, NOW, SAMPLER, ProbeResult
from stored_sets import Sized

N = 400


class Rows(Sized):
    def __init__(self) -> None:
        super().__init__(N)
        self.x = np.random.rand(N, 5).astype(np.float32)
        self.x[3, 2] = np.nan
        self.y = torch.arange(N)

    def __getitem__(self, index: Any) -> Any:
        return self.x[index], self.y[index]


class Counted(Rows):
    """Its list holds objects that `count` makes a number of."""

    def __init__(self, count: Any) -> None:
        super().__init__()
        self.objects = [Countable(count)] * N

    def __getitem__(self, index: Any) -> Any:
        return self.x[index], int(self.objects[index])


class Countable:
    def __init__(self, count: Any) -> None:
        self.count = count

    def __int__(self) -> int:
        return int(self.count())


class Fails(Rows):
    def __getitem__(self, index: Any) -> Any:
        raise ValueError("broken file")


class Computes(Rows):
    def __getitem__(self, index: Any) -> Any:
        return self.look_up(index)

    def look_up(self, index: Any) -> Any:
        return self.x[index]


def probe(dataset: Any, **options: Any) -> ProbeResult:
    loader = DataLoader(dataset, **{"batch_size": 50, "shuffle": True, **options})
    return probe_loader(loader, seconds=0.1)


def test_an_array_data_set_is_compared_and_timed() -> None:
    result = probe(Rows())
    assert result.equal is True and result.reason is None
    assert result.checked_batches >= 1
    assert result.factor is not None and result.factor > 2  # about 30 in a quiet moment
    assert min(result.forms, key=lambda name: result.forms[name]) in (GETITEMS, SAMPLER)
    subset = probe(Subset(TensorDataset(torch.randn(N, 3)), range(0, N, 2)))
    assert subset.equal is True
    assert set(result.forms) == set(subset.forms) == {NOW, GETITEMS, SAMPLER}
    assert probe(Counted(lambda: 3)).equal is True


def test_random_states_are_what_they_were() -> None:
    def states() -> Any:
        return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()

    dataset = Counted(lambda: 9e9 * (np.random.rand() + random.random() + float(torch.rand(()))))
    before = states()
    probe(dataset)
    assert before == states()


def test_random_augmentation_cannot_be_compared() -> None:
    result = probe(Counted(lambda: np.random.rand() * 1e9))
    assert result.equal is None and "other values each time" in (result.reason or "")
    assert not result.forms and result.factor is None


def test_a_batched_form_with_other_values_is_found_out() -> None:
    dataset = Rows()
    held = dataset.x

    class Sly(np.ndarray):
        def __getitem__(self, index: Any) -> Any:
            found = np.asarray(self).__getitem__(index)
            return found if np.isscalar(index) or isinstance(index, int) else found + 1

    dataset.x = held.view(Sly)
    result = probe(dataset)
    assert result.equal is not True


@pytest.mark.parametrize(
    ("dataset", "options", "reason"),
    [
        (Fails(), {}, "more than a lookup"),
        (Computes(), {}, "look_up"),
        (Counted(lambda: {}["no such key"]), {}, "KeyError"),
        (Rows(), {"batch_size": None, "shuffle": False}, "whole batches"),
        (Rows(), {"collate_fn": list}, "collate function"),
        (TensorDataset(torch.empty(0, 2)), {"shuffle": False}, "empty"),
    ],
)
def test_what_cannot_be_probed_says_why(dataset: Any, options: dict[str, Any], reason: str) -> None:
    result = probe(dataset, **options)
    assert result.equal is None and reason in (result.reason or "")


def test_streams_and_other_objects_are_refused() -> None:
    class Stream(IterableDataset[int]):
        def __iter__(self) -> Any:
            return iter(range(3))

    for loader in (DataLoader(Stream()), [1, 2, 3], None):
        assert "map-style" in (probe_loader(loader).reason or "")


def test_batches_are_the_same_only_with_the_same_types_and_values() -> None:
    nan = torch.tensor([1.0, float("nan")])
    assert same_batch([nan, ("a",)], [nan.clone(), ("a",)])
    assert not same_batch([nan], (nan,))
    assert not same_batch(torch.zeros(2), torch.zeros(2, dtype=torch.float64))
    assert not same_batch({"a": nan}, {"b": nan})
    assert not same_batch(torch.zeros(2), torch.zeros(1))
    assert not same_batch(["a"], ["b"])
