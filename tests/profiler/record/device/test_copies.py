"""The copy wrappers, with torch's `meta` device in the place of a GPU: real calls, no hardware."""

import threading
from collections import UserDict
from dataclasses import dataclass
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from loaderscope.profiler.record.device import copies
from torch_modes import seen_by_modes


class Listener:
    """Stands for a batch that was handed over."""

    def __init__(self):
        self.seen, self.started = [], 0

    def before_copy(self):
        self.started += 1

    def after_copy(self, start, host_ns, nbytes, pinned, blocking):
        assert host_ns > 0
        self.seen.append((nbytes, pinned, blocking))


@pytest.fixture
def listener():
    copies.install("meta")
    copies.install("cuda")
    listener = Listener()
    yield listener
    copies.uninstall()
    assert not {"to", "cuda", "copy_"} & set(vars(torch.Tensor))
    assert torch.ones(1).to(torch.float64).dtype is torch.float64


X = 4096


def test_every_way_of_copying(listener):
    batch = {"x": torch.ones(X), "more": [torch.ones(2, dtype=torch.int64)]}
    copies.expect(listener, batch)
    on_meta = torch.empty(X, device="meta")
    batch["x"].to("meta")
    batch["x"].to(device="meta", non_blocking=True)
    batch["x"].to(torch.device("meta"), torch.float16)
    batch["x"].to(on_meta)
    batch["x"].to(tensor=on_meta)
    batch["x"].to(device="meta", copy=True)
    on_meta.copy_(batch["x"], True)
    batch["more"][0].to("meta")
    sizes = [X * 4] * 7 + [16]
    assert listener.seen == [(size, False, at not in (1, 6)) for at, size in enumerate(sizes)]
    assert listener.started == 8


def test_what_is_no_copy_of_the_batch(listener):
    batch = torch.ones(X)
    batch.to("meta")  # before the hand-over
    copies.expect(listener, batch)
    batch.to(torch.float64)
    batch.to("cpu")
    batch.to(copy=True)
    torch.ones(3).to("meta")  # a scalar of the training step
    torch.empty(X, device="meta").to("meta")
    torch.ones(X).copy_(batch)
    assert listener.seen == []
    (batch * 2).to("meta")  # derived from the batch
    assert listener.seen == [(X * 4, False, True)]
    copies.forget(listener)
    batch.to("meta")
    assert len(listener.seen) == 1


def test_another_thread_copies_for_the_batch(listener):
    batch = torch.ones(X)
    copies.expect(listener, [batch])
    thread = threading.Thread(target=lambda: (batch.to("meta"), torch.ones(X).to("meta")))
    thread.start()
    thread.join()
    assert listener.seen == [(X * 4, False, True)]


def test_odd_arguments_get_torchs_own_answer(listener):
    calls = (
        lambda t: t.to("nowhere"),
        lambda t: t.to(),
        lambda t: t.to(1.5),
        lambda t: t.to("meta", colour="red"),
        lambda t: t.copy_("text"),
        lambda t: t.cuda("nowhere"),
    )

    def answer(call):
        try:
            return repr(call(torch.ones(2)))
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    copies.expect(listener, torch.ones(X))
    with_hooks = list(map(answer, calls))
    copies.uninstall()
    assert with_hooks == list(map(answer, calls))


def test_a_failing_listener_and_a_backend_without_page_locked_memory_cost_no_copy(
    listener, monkeypatch
):
    fail = Mock(side_effect=NotImplementedError("register hooks first"))
    monkeypatch.setattr(torch.Tensor, "is_pinned", fail)
    batch = torch.ones(X)
    copies.expect(listener, batch)
    assert batch.to("meta").shape == (X,)
    assert listener.seen == [(X * 4, None, True)]
    listener.before_copy = listener.after_copy = fail
    assert batch.to("meta").shape == (X,)


def test_subclasses_keep_their_class(listener):
    asked = []

    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    own = torch.ones(X).as_subclass(Own)
    asked.clear()
    copies.expect(listener, own)
    assert type(own.to("meta")) is Own
    assert asked == [torch._C.TensorBase.to]  # subclasses look it up in sets of their own
    assert listener.seen == [(X * 4, False, True)]
    doubled = torch.func.vmap(lambda row: row.to(torch.float64) * 2)(torch.ones(2, X))
    assert doubled.dtype is torch.float64


def test_tensors_that_dispatch_themselves_are_left_alone(listener):
    from torch.testing._internal.two_tensor import TwoTensor

    two = TwoTensor(torch.ones(X), torch.ones(X))
    copies.expect(listener, [two])
    assert type(two.to("meta")) is TwoTensor
    # What it does with the plain tensors inside is its own affair, and seen as such.
    assert len(listener.seen) in (0, 2)


def test_modes_of_the_program_see_nothing_of_ours(listener):
    batch, there = torch.ones(X), torch.empty(X, device="meta")

    def copied():
        with seen_by_modes() as seen:
            batch.to("meta")
            batch.to(there)
            there.copy_(batch)
        return seen

    with seen_by_modes() as seen:
        copies.expect(listener, {"x": batch})
    assert seen == []
    recorded = copied()
    assert len(listener.seen) == 3
    copies.uninstall()
    assert recorded == copied()


@dataclass
class Sample:
    x: torch.Tensor
    more: list[Any]


class Encoding(UserDict[str, Any]):
    """As a tokeniser's BatchEncoding holds its tensors."""

    def __getattr__(self, name):
        raise AssertionError(f"asked for {name}")


class Graph:
    """As a graph library's batch, which refers to itself."""

    def __init__(self, owner=None):
        self._mapping = {"edges": torch.ones(2, dtype=torch.int64)}
        self._store = owner or Graph(self)


def test_nested_batches_of_all_kinds(listener):
    small = torch.ones(3)
    encoding, graph = Encoding(ids=torch.ones(2)), Graph()
    batch = [Sample(torch.ones(4), [{"y": small}]), (encoding, {"graph": graph})]
    copies.expect(listener, batch)
    for each in (batch[0].x, small):
        each.to("meta")
    encoding.data["ids"].to("meta")
    graph._store._mapping["edges"].to("meta")
    small.clone().to("meta")  # too small to be data, where nobody knows it
    assert [nbytes for nbytes, _, _ in listener.seen] == [16, 12, 8, 16]


def test_a_compiler_sees_no_wrapper(listener):
    import torch._dynamo as dynamo

    def step(x):
        y = x.to(torch.float64)
        z = torch.zeros_like(y)
        z.copy_(y)
        return (z * 2).to(torch.float32).sum()

    x = torch.arange(X, dtype=torch.float32)

    def run():
        dynamo.reset()
        dynamo.utils.counters.clear()
        value = torch.compile(step, backend="eager", fullgraph=True)(x).item()
        stats = dynamo.utils.counters
        return value, stats["stats"]["unique_graphs"], sum(stats["graph_break"].values())

    copies.expect(listener, x)
    with_hooks = run()
    copies.uninstall()
    assert with_hooks == run()
    assert with_hooks[1:] == (1, 0)


def test_installing_leaves_another_wrapper_alone(monkeypatch):
    theirs = lambda self, *args, **kwargs: self  # noqa: E731
    monkeypatch.setattr(torch.Tensor, "to", theirs, raising=False)
    copies.install("meta")
    assert vars(torch.Tensor)["to"] is theirs
    copies.uninstall()
    assert vars(torch.Tensor)["to"] is theirs
