"""A data set that only looks samples up gives whole batches, and the loop sees no difference."""

from __future__ import annotations

import gc
import importlib.util
import multiprocessing
import random
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, TensorDataset

from loaderscope.advisors.assemble.probe import same_batch
from loaderscope.advisors.code.batched.batch_values import NotArrays
from loaderscope.advisors.schema.report_model import Range
from loaderscope.tuning.candidates import neighbours, ordered, usual
from loaderscope.tuning.evidence import whole_batches as module
from loaderscope.tuning.evidence.guards import Depends
from loaderscope.tuning.evidence.settings import Settings
from loaderscope.tuning.evidence.whole_batches import whole_batches
from switch_data import Drawing, Script, scripted

pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning")

OWN, AT_ONCE = Settings(0), Settings(0, batched=True)


class Pairs(Dataset):
    """Arrays of two kinds and a list."""

    def __init__(self, length: int) -> None:
        self.points = np.arange(length * 3, dtype=np.float32).reshape(length, 3)
        self.labels = torch.arange(length)
        self.names = [f"row {row}" for row in range(length)]
        self.transform = None
        self.asked = 0

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> Any:
        """What is written of these.

        Over several lines.
        """
        point = torch.from_numpy(self.points[index])
        if self.transform is not None:
            point = self.transform(point)
        return {"point": point, "label": self.labels[index], "name": self.names[index]}


class Tensors(Pairs):
    def __getitem__(self, index: int) -> Any:
        return torch.as_tensor(self.points[index]), self.labels[index]


class AtOnceAlready(Tensors):
    def __getitems__(self, indices: list[int]) -> Any:
        return [self[index] for index in reversed(indices)]


class MakesAttributes(Tensors):
    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class Decides(Tensors):
    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        return {}


class Patched(Tensors):
    pass


def reversed_item(self: Any, index: int) -> Any:
    return self.labels[-index]


def halved(batch: list[Any]) -> Any:
    return torch.stack([each[1] for each in batch]) // 2


def loader_of(data: Any, size: int = 4, **arguments: Any) -> DataLoader[Any]:
    return DataLoader(
        data, batch_size=size, shuffle=True, generator=torch.Generator().manual_seed(5), **arguments
    )


def looped(loader, epochs=2, between=lambda data: None):
    """`between`: what the loop does to its data set after the twelfth batch of each epoch."""
    torch.manual_seed(1)
    found = []
    for _ in range(epochs):
        for number, batch in enumerate(loader, 1):
            found.append((batch, torch.rand(1), random.Random(number).random()))
            if number == 12:
                between(loader.dataset)
    return [*found, torch.rand(1)]


def alike(make: Callable[[], Any], plan: dict[int, Settings], between=lambda data: None) -> Script:
    """A loop that is switched so sees no difference."""
    script = scripted(loader := make(), plan)
    assert all(map(same_batch, looped(loader, 2, between), looped(make(), 2, between)))
    return script


SETS: dict[str, Callable[[int], Any]] = {
    "a class of one's own": Pairs,
    "TensorDataset": lambda n: TensorDataset(torch.arange(3.0 * n).reshape(n, 3), torch.arange(n)),
    "Subset of one": lambda n: Subset(Subset(Tensors(3 * n), np.arange(1, 2 * n)), [*range(n)]),
    "ConcatDataset": lambda n: ConcatDataset([Tensors(n // 2), Tensors(n - n // 2)]),
}

some = st.sampled_from([OWN, AT_ONCE, Settings(1), Settings(2, 1)])
# Whole batches are asked for at batch 20, and have their turn before others are wanted.
moments = st.integers(1, 40).filter(lambda batch: not 20 <= batch < 30)


@pytest.mark.parametrize("kind", SETS)
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(workers=st.integers(0, 1), plan=st.dictionaries(moments, some, min_size=1, max_size=5))
def test_switches_to_whole_batches_and_back_change_nothing(kind, workers, plan):
    script = alike(lambda: loader_of(SETS[kind](70), num_workers=workers), {**plan, 20: AT_ONCE})
    assert not script.failures and any(made == AT_ONCE for _, made in script.events)


@pytest.mark.parametrize("started", [pytest.param("forkserver", marks=pytest.mark.slow), "spawn"])
def test_data_that_other_processes_get_pickled_is_as_it_was(started, monkeypatch):
    """Its tensors are moved to shared memory, which is no change."""
    context = multiprocessing.get_context(started)
    monkeypatch.setattr(multiprocessing.context._default_context, "_actual_context", context)
    data = TensorDataset(torch.arange(300_000.0).reshape(100, 3000), torch.arange(100))
    script = alike(lambda: loader_of(data), {8: Settings(1), 40: Settings(0)})
    assert not script.failures and data.tensors[0].is_shared()
    assert Settings(1) in [made for _, made in script.events]


def _grown() -> Any:
    joined = ConcatDataset([Tensors(4), Tensors(4)])
    joined.datasets[0] = Tensors(6)
    return joined


NOT_LOOKED_UP = {
    "it has __getitems__": (lambda: AtOnceAlready(8), {}, "__getitems__ already"),
    "it makes attributes": (lambda: MakesAttributes(8), {}, "attributes as they are asked for"),
    "its __dict__ is its own": (lambda: Decides(8), {}, "not recorded|attribute"),
    "collate_fn": (lambda: Tensors(8), {"collate_fn": halved}, "collate function of its own"),
    "no batches": (lambda: Tensors(8), {"batch_size": None}, "whole batches already"),
    "longer than joined": (_grown, {}, "another length by now"),
}


@pytest.mark.parametrize("kind", NOT_LOOKED_UP)
def test_what_is_more_than_looking_up_is_left_alone(kind: str) -> None:
    data, arguments, why = NOT_LOOKED_UP[kind]
    with pytest.raises(NotArrays, match=why):
        whole_batches(DataLoader(data(), **{"batch_size": 2, **arguments}))


def test_a_method_put_in_place_of_the_one_in_the_file() -> None:
    Patched.__getitem__ = reversed_item  # type: ignore[method-assign]
    with pytest.raises(NotArrays):
        whole_batches(loader_of(Patched(8)))


WRITTEN = """
import torch
from torch.utils.data import Dataset

class Rows(Dataset):
    def __init__(self):
        self.rows, self.others = torch.arange(8), -torch.arange(8)
    def __len__(self):
        return 8
    def __getitem__(self, index):
        return self.rows[index]
"""


def test_a_file_that_is_edited_while_its_program_runs(tmp_path: Path) -> None:
    file = tmp_path / "edited_rows.py"
    file.write_text(WRITTEN)
    spec = importlib.util.spec_from_file_location("edited_rows", file)
    assert spec is not None and spec.loader is not None
    written = importlib.util.module_from_spec(spec)
    sys.modules["edited_rows"] = written
    try:
        spec.loader.exec_module(written)
        loader = loader_of(written.Rows())
        assert len(whole_batches(loader)) == 8
        file.write_text(WRITTEN.replace("self.rows[index]", "self.others[index]"))
        with pytest.raises(NotArrays, match="not what runs"):
            whole_batches(loader_of(written.Rows()))
    finally:
        del sys.modules["edited_rows"]


CHANGES: dict[str, tuple[Callable[[int], Any], Callable[[Any], Any]]] = {
    "a transform comes": (Pairs, lambda data: setattr(data, "transform", torch.neg)),
    "another array": (Pairs, lambda data: setattr(data, "labels", data.labels * 2)),
    "the array itself": (Pairs, lambda data: data.labels.add_(1)),
    "what is not read": (Pairs, lambda data: setattr(data, "asked", data.asked + 7)),
    "Subset.indices": (
        lambda n: Subset(Tensors(n), list(range(n // 2 + 10))),
        lambda data: data.indices.reverse(),
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_loop_that_changes_its_data_set_sees_the_change(what: str) -> None:
    make, between = CHANGES[what]
    script = alike(lambda: loader_of(make(100)), {2: AT_ONCE}, between)
    assert [type(each) for each in script.failures] == [Depends]
    if what == "Subset.indices":
        assert str(script.failures[0]) == f"the loop changes {what} between batches"


def test_a_batch_that_is_not_the_same_is_made_by_the_data_set(monkeypatch):
    other = [torch.zeros(1), torch.zeros(1)]
    monkeypatch.setattr(module.WholeBatches, "__getitems__", lambda self, indices: other)
    (failure,) = alike(lambda: loader_of(Tensors(100)), {2: AT_ONCE}).failures
    assert str(failure) == "its batches differ from those of the code's own settings"


@pytest.mark.parametrize(
    "drawn", [[[0, 1], [2, 3], [99, 1]], [[0, 1], [], [1, 2]], [[0], [True, False], [2]], [["a"]]]
)
def test_what_a_sampler_draws_otherwise_comes_to_what_it_came_to(drawn: list[Any]) -> None:
    def ran(loader: Any) -> tuple[list[Any], str]:
        found = []
        try:
            found.extend(iter(loader))
        except Exception as error:
            return found, type(error).__name__
        return found, ""

    def make() -> Any:
        data = TensorDataset(torch.arange(8), torch.arange(8.0))
        return DataLoader(data, batch_sampler=[[5, 6], *drawn])

    bare = ran(make())
    loader = make()
    scripted(loader, {1: AT_ONCE})
    found = ran(loader)
    assert found[1] == bare[1] and len(found[0]) == len(bare[0])
    assert all(map(same_batch, found[0], bare[0]))


class Equal(DataLoader):
    """A loader that compares as its user likes, and cannot be hashed."""

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        raise AssertionError("the user's method was called")


def test_a_loader_is_never_compared_or_hashed() -> None:
    assert whole_batches(Equal(Tensors(8), batch_size=4)) is not None


def test_whole_batches_are_a_candidate_with_what_their_look_up_costs() -> None:
    asked: list[dict[str, Any]] = []

    def predict(**changes: Any) -> Any:
        asked.append(changes)
        gain = 4.0 if "fetch_us" in changes else 1.5 if changes.get("num_workers") == 2 else 1.0
        return Range(gain * 0.9, gain, gain * 1.1)

    found = ordered(Settings(1), False, predict, 2, False, (3.0, 9.0))
    assert found[0].settings == AT_ONCE
    assert found[0].predicted is not None and found[0].predicted.mid == 4.0
    assert any(each.get("fetch_us") == (3.0, 9.0) and each["num_workers"] == 0 for each in asked)
    assert AT_ONCE not in [each.settings for each in ordered(Settings(1), False, predict, 2)]
    assert usual(Settings(1), 2, look_up=True)[0].settings == AT_ONCE
    assert neighbours(AT_ONCE, Settings(1), set(), 2) == []
    pinned = Settings(3, 4, True, True).looked_up
    assert pinned.pin_memory and not pinned.with_workers(2).batched


@pytest.mark.parametrize("kind", [Tensors, Drawing])
def test_neither_loader_nor_data_set_is_kept_alive(kind: Any) -> None:
    data = kind(8)
    loader = loader_of(data)
    with suppress(NotArrays):
        whole_batches(loader)
    alive = [weakref.ref(loader), weakref.ref(data)]
    del loader, data
    gc.collect()
    assert [each() for each in alive] == [None, None]
