"""What the hook in a script's process takes for the loop's batches, and where imports come from."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from loaderscope.experiment.side import Gate, _move_imports


class Listener(Gate):
    """Keeps what is said, and lets everything pass."""

    def __init__(self) -> None:
        super().__init__({"copy": "", "root": ""})
        self.said: list[str] = []

    def _wait(self, iterator: Any) -> None:
        self._go, self._remaining = {"compare": "values", "most_s": float("inf")}, sys.maxsize

    def _send(self, **said: Any) -> None:
        self.said += [key for key in said if key != "rows"]


class Nested(Dataset[int]):
    """Each sample iterates over a loader of its own."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return index + sum(int(batch) for batch in DataLoader([1, 2]))


class Failing(Nested):
    def __getitem__(self, index: int) -> int:
        raise ValueError("on purpose")


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Listener:
    made = Listener()
    parts = torch.utils.data.dataloader
    for kind in (parts._SingleProcessDataLoaderIter, parts._MultiProcessingDataLoaderIter):

        def hooked(iterator: Any, bare: Any = kind._next_data) -> Any:
            return made.step(iterator, bare) if made.counts else bare(iterator)

        monkeypatch.setattr(kind, "_next_data", hooked)
    return made


def test_batches_of_a_loader_inside_another_are_its_own_affair(gate: Listener) -> None:
    assert [int(each) for each in DataLoader(Nested())] == [3, 4, 5, 6]
    assert gate.said == ["begin", *["batch"] * 4, "end"]


def test_an_epoch_that_the_loop_leaves_early_ends_with_the_next(gate: Listener) -> None:
    """Whether the iterator is a new one, or that of workers that persist."""
    for persistent in (False, True):
        loader = DataLoader([1, 2, 3], num_workers=1, persistent_workers=persistent)
        for _ in range(2):
            next(iter(loader))
        assert gate.said == ["begin", "batch"] * 2
        gate.said.clear()


def test_an_error_of_next_is_told_and_raised(gate: Listener) -> None:
    with pytest.raises(ValueError, match="on purpose"):
        next(iter(DataLoader(Failing())))
    assert gate.said == ["begin", "raised"]


def test_imports_come_from_the_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a project on the path and of an editable installation; not of what is installed in it."""
    root, copy = "/home/me/project", "/tmp/copy"
    kept = ["/home/me/project2", "/home/me/project/.venv/lib/site-packages", "/usr/lib"]
    monkeypatch.setattr(sys, "path", [root, f"{root}/src", *kept])
    module = ModuleType("__editable___finder")
    table = {"mine": f"{root}/src/mine", "other": "/home/me/other"}
    module.MAPPING = table  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    finder = SimpleNamespace(__module__=module.__name__)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, finder])
    _move_imports(root, copy)
    assert sys.path == [copy, f"{copy}/src", *kept]
    assert table == {"mine": f"{copy}/src/mine", "other": "/home/me/other"}
