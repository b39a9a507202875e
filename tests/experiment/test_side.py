"""What the hook in a script's process takes for the loop's batches, and where imports come from. Each
of sixty changes of a batch is seen, and changes of none are not."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from loaderscope.experiment.differences import Event, first_difference
from loaderscope.experiment.side import _move_imports

Said = Callable[[], list[str]]


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
def said(listener: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """What was said since it was last asked."""
    gate = listener(monkeypatch)

    def new() -> list[str]:
        events, gate.events = gate.events, []
        return [what for what, _ in events]

    return new


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
def events_of(listener: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[Event]]:
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
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    yield
    random.setstate(states[0])
    np.random.set_state(states[1])
    torch.set_rng_state(states[2])


@pytest.fixture
def base(mutants: Any, events_of: Any) -> list[Event]:
    return events_of(mutants.BASE)


def test_every_mutant_is_seen(mutants, base, events_of):
    assert len(mutants.MUTANTS) >= 60
    assert sum(what == "batch" for what, _ in base) == BATCHES
    programs = {mutant.name: mutants.source_of(mutant) for mutant in mutants.MUTANTS}
    unseen = [
        n for n, each in programs.items() if not first_difference(base, events_of(each), False)
    ]
    assert unseen == []


def test_what_changes_no_batch_is_the_same(mutants, base, events_of):
    for mutant in mutants.SAME:
        events = events_of(mutants.source_of(mutant))
        assert first_difference(base, events, False) is None, mutant.name
    assert first_difference(base, base, True) is None
