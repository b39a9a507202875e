"""The worker loops that torch has had, shortened to what the hooks hold on to, in this process."""

import os
import queue
import weakref
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from torch._utils import ExceptionWrapper
from torch.utils.data import Dataset, _DatasetKind, default_collate

from loaderscope.profiler.native.form import hooks
from loaderscope.profiler.record.session import session as sessions
from loaderscope.profiler.record.transit.envelope import TIMES, Envelope, unwrap
from loaderscope.profiler.record.transit.worker import prepared
from loaderscope.profiler.store.gaps import told_by_worker


class Data(Dataset[Any]):
    def __getitem__(self, index):
        return torch.full((3,), float(index))


def serve(fetcher, index_queue, data_queue, worker_id):
    while True:
        r = index_queue.get(timeout=5)
        if r is None:
            break
        idx, index = r
        try:
            data = fetcher.fetch(index)
        except Exception:
            data = ExceptionWrapper(where=f"in DataLoader worker process {worker_id}")
        data_queue.put((idx, data))
        del data, idx, index, r


def with_dataset(dataset_kind, dataset, index_queue, data_queue, collate_fn, worker_id):
    """torch 2.4 to 2.13."""
    fetcher = _DatasetKind.create_fetcher(dataset_kind, dataset, True, collate_fn, False)
    serve(fetcher, index_queue, data_queue, worker_id)


def with_holder(dataset_kind, dataset_holder, index_queue, data_queue, collate_fn, worker_id):
    """torch 2.14 and later: the list is emptied, so that nobody but the loop has the data set."""
    dataset = dataset_holder.pop()
    fetcher = _DatasetKind.create_fetcher(dataset_kind, dataset, True, collate_fn, False)
    serve(fetcher, index_queue, data_queue, worker_id)


def with_state(dataset_kind, dataset, index_queue, data_queue, collate_fn, worker_id, worker_state):
    """torchdata's: a request for a snapshot goes in, a state comes out beside the batch."""
    fetcher = _DatasetKind.create_fetcher(dataset_kind, dataset, True, collate_fn, False)
    while (r := index_queue.get(timeout=5)) is not None:
        idx, (index, _snapshot) = r
        data_queue.put((idx, (fetcher.fetch(index), worker_id, None)))


@pytest.fixture(autouse=True)
def as_in_a_worker(monkeypatch):
    """What a worker changes for good in its own process is put back in this one."""
    before = _DatasetKind.__dict__["create_fetcher"]
    monkeypatch.setattr(sessions._process, "in_worker", False)
    yield
    _DatasetKind.create_fetcher = before


def run_worker(loop, args, place=None):
    """As `worker_target.Target` does it."""
    hooks.working(lambda: (loop, args, prepared(loop, args, place)))()


def arguments(loop, dataset, tasks, results):
    given = [dataset] if loop is with_holder else dataset
    state = (None,) if loop is with_state else ()
    return (_DatasetKind.Map, given, tasks, results, default_collate, 3, *state)


def run(loop, dataset, batches, place=None):
    """What the loop puts on its queue, in order."""
    tasks, results = queue.Queue(), queue.Queue()
    for number, indices in enumerate(batches):
        tasks.put((number, (indices, False) if loop is with_state else indices))
    tasks.put(None)
    run_worker(loop, arguments(loop, dataset, tasks, results), place)
    return list(results.queue)


BATCHES = [[0, 1], [2, 3], [4, 5], [6, 7]]


@pytest.mark.parametrize("loop", [with_dataset, with_holder, with_state])
def test_every_known_loop_is_measured(loop):
    got = run(loop, Data(), BATCHES)
    assert [task for task, _ in got] == [0, 1, 2, 3]
    for (task, content), indices in zip(got, BATCHES, strict=True):
        envelope = unwrap(content[0] if loop is with_state else content)
        assert type(envelope) is Envelope
        assert envelope.payload[:, 0].tolist() == indices
        told, t_fetch, fetch, collate, fetch_cpu, _, size, _, tensors, pid, worker, *samples = (
            TIMES.unpack(envelope.times)
        )
        assert (told, pid, worker) == (task, os.getpid(), 3)
        assert t_fetch > 0 and fetch > 0 and collate > 0 and fetch_cpu >= 0
        assert (size, tensors) == (2 * 3 * 4, 1)
        assert all(sample > 0 for sample in samples)  # single samples were timed


@pytest.mark.parametrize(("loop", "looked_at"), [(with_dataset, False), (with_holder, True)])
def test_no_reference_of_ours_keeps_the_data_set(loop, looked_at, tmp_path):
    dataset = Data()
    gone = weakref.ref(dataset)
    place = (str(tmp_path), 0, 0) if looked_at else None
    tasks = queue.Queue()
    tasks.put((0, [0, 1]))
    tasks.put(None)
    given = arguments(loop, dataset, tasks, queue.Queue())
    del dataset
    run_worker(loop, given, place)
    if looked_at:
        assert "torch.Tensor" in (tmp_path / "looks-0-w3.json").read_text()  # samples were seen
    del given
    assert gone() is None


@pytest.mark.parametrize("loop", [with_holder, with_state])
def test_a_fetcher_that_cannot_be_marked_leaves_the_worker_bare(loop, tmp_path, monkeypatch):
    broken = Mock(side_effect=TypeError("no twin"))
    monkeypatch.setattr("loaderscope.profiler.record.transit.fetchers.mark_collate", broken)
    got = run(loop, Data(), BATCHES, (str(tmp_path), 0, 0))
    batches = [content[0] if loop is with_state else content for _, content in got]
    assert [batch[:, 0].tolist() for batch in batches] == BATCHES
    assert told_by_worker(tmp_path, 0) == "TypeError: no twin"


def test_messages_of_another_shape_pass_as_they_are():
    def loop(dataset_kind, index_queue, data_queue, worker_id):
        data_queue.put((1, "a batch", "something new"))
        data_queue.put(index_queue.get())

    tasks, results = queue.Queue(), queue.Queue()
    tasks.put((1, [2], "something new"))
    run_worker(loop, (0, tasks, results, 0))
    assert list(results.queue) == [(1, "a batch", "something new"), (1, [2], "something new")]
