"""What a side's hook takes for the loop's batches, where imports come from; which changes are seen."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import loaderscope
from loaderscope.experiment.differences import Event, first_difference
from loaderscope.experiment.side import Gate, _hook, _move_imports

sys.path.append(str(Path(loaderscope.__file__).resolve().parent / "benchmarks"))

import try_mutants as mutants

Said = Callable[[], list[str]]


class Listener(Gate):
    """Keeps what a side would say of so many batches, and lets them pass."""

    def __init__(self, batches: int) -> None:
        super().__init__({"copy": "", "root": ""})
        self.events: list[tuple[str, Any]] = []
        self._batches = batches

    def _wait(self, iterator: Any) -> None:
        if self._go["compare"]:
            raise KeyboardInterrupt
        self._go, self._remaining = {"compare": "values", "most_s": float("inf")}, self._batches

    def _send(self, what: str, said: Any) -> None:
        self.events.append((what, said))


def listener(patched: pytest.MonkeyPatch, batches: int = sys.maxsize) -> Listener:
    """Hooks torch's iterators as a side does, until the patch ends."""
    made, module = Listener(batches), torch.utils.data.dataloader
    for name in ("_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"):
        kind = getattr(module, name)
        patched.setattr(kind, "_next_data", kind._next_data)
        _hook(module.__name__, name, made)
    return made


class Nested(Dataset[int]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return index + sum(int(batch) for batch in DataLoader([1, 2]))


class Failing(Nested):
    def __getitem__(self, index: int) -> int:
        raise ValueError("on purpose")


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Said:
    """What was said since it was last asked."""
    gate = listener(monkeypatch)
    return lambda: [gate.events.pop(0)[0] for _ in [*gate.events]]


def test_batches_of_a_loader_inside_another_are_its_own_affair(said: Said) -> None:
    assert [int(each) for each in DataLoader(Nested())] == [3, 4, 5, 6]
    assert said() == ["begin", *["batch"] * 4, "end"]


def test_an_epoch_that_the_loop_leaves_early_ends_with_the_next(said: Said) -> None:
    """Whether the iterator is a new one, or that of workers that persist."""
    for persistent in (False, True):
        loader = DataLoader([1, 2, 3], num_workers=1, persistent_workers=persistent)
        for _ in range(2):
            next(iter(loader))
        assert said() == ["begin", "batch"] * 2


def test_an_error_of_next_is_told_and_raised(said: Said) -> None:
    with pytest.raises(ValueError, match="on purpose"):
        next(iter(DataLoader(Failing())))
    assert said() == ["begin", "raised"]


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


BATCHES = 64

# Of torch, as it rebuilds a sparse tensor that a worker has sent.
pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")


@pytest.fixture
def events_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[Event]]:
    """What a program's loop is handed, by the hook of a side."""

    def events(source: str) -> list[Event]:
        program = ModuleType("program")  # what a worker sends is pickled by its module's name
        monkeypatch.setitem(sys.modules, "program", program)
        exec(compile(source, "train.py", "exec"), vars(program))
        body = source[source.index("    loader = make_loader()") :]
        loop = compile("if True:\n" + body, "train.py", "exec")
        with monkeypatch.context() as patched:
            gate = listener(patched, BATCHES)
            with pytest.raises(KeyboardInterrupt):
                exec(loop, vars(program))
        return gate.events

    return events


@pytest.fixture(autouse=True)
def streams() -> Iterator[None]:
    pythons, numpys, torchs = random.getstate(), np.random.get_state(), torch.get_rng_state()
    yield
    random.setstate(pythons), np.random.set_state(numpys), torch.set_rng_state(torchs)


def test_every_mutant_is_seen_and_what_changes_no_batch_is_the_same(events_of):
    base = events_of(mutants.BASE)
    assert len(mutants.MUTANTS) >= 60
    assert sum(what == "batch" for what, _ in base) == BATCHES
    for mutant in (*mutants.MUTANTS, *mutants.SAME):
        found = first_difference(base, events_of(mutants.source_of(mutant)), False)
        assert (found is None) == (mutant in mutants.SAME), mutant.name
    assert first_difference(base, base, True) is None
