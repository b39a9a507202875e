"""What a program changes in its data set reaches the batches when it would without tuning."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, Subset

import loaderscope
from loaderscope.tuning.data_state import MOST, state_of
from loaderscope.tuning.settings import Settings
from switch_data import scripted


class Scaled(Dataset):
    """Its samples depend on what the program set last."""

    def __init__(self, fetches: bool = False) -> None:
        self.scale, self.steps, self.fetches = {"by": 1}, [torch.zeros(1)], fetches
        self.seen: dict[int, int] = {}

    def __len__(self) -> int:
        return 60

    def __getitem__(self, index: int) -> int:
        if self.fetches:
            self.seen[index] = index  # a change of its own is none of the program's
        return index * self.scale["by"]


def loader_of(data: Dataset, workers: int, **more: Any) -> Any:
    return DataLoader(data, batch_size=4, num_workers=workers, **more)


def epochs(loader: Any, data: Scaled, each: int = 0) -> list[int]:
    """Three, the scale changed before each, or in them with so many batches."""
    found = []
    for epoch in range(3):
        data.scale["by"] = epoch + 1
        for number, batch in enumerate(loader, 1):
            found += batch.tolist()
            if each and number % each == 0:
                data.scale["by"] += 10
    return found


def test_kept_workers_do_not_keep_an_older_data_set() -> None:
    bare = epochs(loader_of(data := Scaled(), 1), data)
    loader = loader_of(data := Scaled(), 1)
    script = scripted(loader, {3: Settings(1, persistent_workers=True)})
    assert epochs(loader, data) == bare
    assert {str(each) for each in script.failures} == {
        "the program changes its data set between epochs, which kept workers do not see"
    }
    loaderscope.unwatch(loader)


def test_workers_are_kept_where_nothing_changes() -> None:
    data = Scaled(fetches=True)
    loader = loader_of(Subset(data, range(40)), 1)
    script = scripted(loader, {3: Settings(1, persistent_workers=True)})
    assert [len([*loader]) for _ in range(3)] == [10, 10, 10] and not script.failures
    loaderscope.unwatch(loader)


def test_what_changes_in_mid_epoch_is_seen_with_the_next_by_workers_begun_late() -> None:
    bare = epochs(loader_of(data := Scaled(), 1), data, each=5)
    loader = loader_of(data := Scaled(), 1)
    script = scripted(loader, {2: Settings(3), 7: Settings(2), 12: Settings(1, 4)}, kept=False)
    assert epochs(loader, data, each=5) == bare and not script.failures
    loaderscope.unwatch(loader)


def test_a_loop_that_changes_the_data_set_keeps_it_in_the_training_process() -> None:
    data = Scaled(fetches=True)
    loader = loader_of(data, 0)
    found: list[str | None] = []
    script = scripted(loader, {})
    script.handed = lambda iterator, batch: found.append(iterator.why_unsafe(Settings(2)))  # type: ignore[method-assign]
    list(loader)
    assert not any(found)
    for _ in loader:
        data.steps.append(torch.zeros(1))
    loaderscope.unwatch(loader)
    data, found = Scaled(), []
    loader = loader_of(data, 0)
    script = scripted(loader, {})
    script.handed = lambda iterator, batch: found.append(iterator.why_unsafe(Settings(2)))  # type: ignore[method-assign]
    for _ in loader:
        data.scale["by"] += 1
    assert "the loop changes the data set" in str(found[-1])
    loaderscope.unwatch(loader)


def test_a_change_under_workers_that_are_tried_ends_the_trial() -> None:
    data = Scaled()
    loader = DataLoader(data, batch_size=2)
    script = scripted(loader, {2: Settings(1)})
    found = []
    for number, batch in enumerate(loader):
        found += batch.tolist()
        if number == 7:
            data.scale["by"] = 5
    assert {str(each) for each in script.failures} == {"the loop changes the data set, which workers do not see"}
    assert sorted({a // b for a, b in zip(found, range(60), strict=True) if b}) == [1, 5]
    loaderscope.unwatch(loader)


class Nested:
    def __init__(self, values: torch.Tensor) -> None:
        self.values, self.itself = values, [self]

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError("no code of the data set's is run")

    def __eq__(self, other: object) -> bool:
        raise AssertionError("no code of the data set's is run")

    __hash__ = None  # type: ignore[assignment]


def test_the_state_is_what_attributes_hold_and_runs_none_of_their_code() -> None:
    loader = loader_of(Scaled(), 0)
    values = torch.zeros(3)
    loader.dataset.nested = Nested(values)
    loader.dataset.long = list(range(10**6))
    before = state_of(loader)
    assert before == state_of(loader) and len(before) <= MOST + 10
    values += 1
    assert before != state_of(loader)
    before = state_of(loader)
    loader.dataset.long.append(0)
    assert before != state_of(loader)
