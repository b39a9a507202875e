"""Digests of the first batches: equal for the same data at the same place, and only then."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset, get_worker_info

import loaderscope
from loaderscope.profiler.record.inspect.digests import (
    UNKNOWN,
    digest_of_batch,
    digest_of_indices,
    plain_indices,
)

ROWS = TensorDataset(torch.arange(64))


class Stream(IterableDataset):
    """Yields 0, 1, 2, …; each worker its share, or all of it."""

    def __init__(self, shared=True):
        self.shared = shared

    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info is not None and self.shared else (0, 1)
        for number in range(first, 48, step):
            yield torch.full((4,), float(number))


def digests(loader, epochs=1):
    """An epoch: digest by task, or by place where there are no tasks."""
    loader = loaderscope.watch(loader)
    for _ in range(epochs):
        list(loader)
    batches = loaderscope.open_run("latest").loaders[-1].batches
    found = []
    for epoch in range(epochs):
        rows = np.flatnonzero(batches["epoch"] == epoch)
        tasks, told = batches["task"][rows].tolist(), batches["digest"][rows].tolist()
        places = [place if task < 0 else task for place, task in enumerate(tasks)]
        pairs = zip(places, told, strict=True)
        found.append({place: digest for place, digest in pairs if digest >= 0})
    return found


@pytest.mark.parametrize("how", [{}, {"num_workers": 2, "in_order": False}])
def test_the_first_batch_of_an_epoch_has_a_digest(how):
    first, second = digests(DataLoader(ROWS, batch_size=4, **how), epochs=2)
    assert first == second == {0: digest_of_indices([0, 1, 2, 3])}


@pytest.mark.parametrize("workers", [0, 2])
def test_another_permutation_is_another_digest(workers):
    kept = {"num_workers": workers, "persistent_workers": workers > 0}
    found = digests(DataLoader(ROWS, batch_size=16, shuffle=True, **kept), epochs=3)
    assert len({epoch[0] for epoch in found}) == 3


@pytest.mark.parametrize(
    ("sampler", "first"),
    [(None, [0]), ([[3, 1], [2, 0]], [3, 1]), ([torch.tensor([3, 1])], [3, 1])],
)
def test_without_automatic_batching(sampler, first):
    loader = DataLoader(torch.arange(64), batch_size=None, sampler=sampler)
    assert digests(loader) == [{0: digest_of_indices(first)}]


def test_indices_of_other_kinds_have_none():
    keyed = dict.fromkeys("abc", 1)
    assert digests(DataLoader(keyed, batch_size=2, sampler=["a", "b", "c"])) == [{}]
    for none in ([True, 1], [], torch.tensor([0.5])):
        assert plain_indices(none) is None
    assert plain_indices([np.int64(3), 4]) == plain_indices(np.array([3, 4])) == [3, 4]
    assert plain_indices(list(range(5000))) == list(range(64))


def test_a_stream_each_worker_yields_whole():
    (seen,) = digests(DataLoader(Stream(shared=False), batch_size=4, num_workers=2))
    assert set(seen) == {0, 1, 2, 3}
    # The first batches of the two workers, and their second.
    assert seen[0] == seen[1] != seen[2] == seen[3]


@pytest.mark.parametrize("how", [{}, {"num_workers": 2, "in_order": False}])
def test_a_stream_the_workers_share(how):
    (seen,) = digests(DataLoader(Stream(), batch_size=4, **how))
    assert set(seen) == {*range(4 if how else 2)}
    assert len(set(seen.values())) == len(seen)


@pytest.mark.usefixtures("nothing_left_over")
def test_a_stream_found_at_work_has_none():
    iterator = iter(DataLoader(Stream(), batch_size=4))
    next(iterator)
    loaderscope.watch_all()
    list(iterator)
    loader = loaderscope.open_run("latest").loaders[0]
    assert loader.count == 11
    assert not loader.batches.measured("digest")


@pytest.mark.parametrize(
    "batch",
    [
        torch.zeros(8),
        [torch.zeros(8), torch.ones(3)[:0]],
        {"a": "", "b": None, "c": 0, "d": True},
        [torch.arange(8), object()],
        [torch.arange(8), torch.zeros(3, device="meta")],
        [torch.arange(8), np.array([object()])],
        [],
    ],
)
def test_what_tells_nothing_has_none(batch):
    assert digest_of_batch(batch) == UNKNOWN


def test_equal_contents_are_equal_digests():
    for make in (
        lambda: torch.arange(100_000),
        lambda: torch.arange(24.0).reshape(4, 6).t(),
        lambda: {"a": np.arange(5), "b": ["x", 2, 0.5, None, b"y"]},
        lambda: torch.arange(4.0, requires_grad=True) * 2,
    ):
        assert digest_of_batch(make()) == digest_of_batch(make()) >= 0


def test_different_contents_are_different_digests():
    batches = [torch.arange(8), torch.arange(8).flip(0), torch.arange(8).int()]
    batches += [{"a": torch.arange(8)}, "text", "texts", 3, 4]
    assert len({digest_of_batch(batch) for batch in batches}) == len(batches)


class Graph:
    def __init__(self, n):
        self.store = {"x": torch.arange(8) + n}
        self.name = object()


def test_objects_are_opened_if_that_is_asked_for():
    assert digest_of_batch([Graph(0)]) == UNKNOWN == digest_of_batch([object()], 2)
    assert digest_of_batch([Graph(0)], 2) == digest_of_batch([Graph(0)], 2) >= 0
    assert digest_of_batch([Graph(0)], 2) != digest_of_batch([Graph(1)], 2)


def test_other_processes_agree():
    """These figures came from another process: a hash with a seed of its own would differ."""
    assert digest_of_indices([1, 2]) == 5797740730781989236
    assert digest_of_batch("text") == 92830072170518793
