"""Each of sixty changes of a batch is seen, and changes of none are not."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from loaderscope.experiment.differences import Event, first_difference
from loaderscope.experiment.side import Gate

BATCHES = 64

# Of torch, as it rebuilds a sparse tensor that a worker has sent.
pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")


class Listener(Gate):
    """Keeps what a side would say."""

    def __init__(self) -> None:
        super().__init__({"copy": "", "root": ""})
        self.events: list[Event] = []

    def _wait(self, iterator: Any) -> None:
        if self._go["compare"]:
            raise KeyboardInterrupt
        self._go, self._remaining = {"compare": "values", "most_s": float("inf")}, BATCHES

    def _send(self, **said: Any) -> None:
        self.events += [each for each in said.items() if each[0] != "rows"]


def events_of(source: str, monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """What a program's loop is handed, by the hook of a side."""
    gate = Listener()
    program = ModuleType("program")  # what a worker sends is pickled by its module's name
    monkeypatch.setitem(sys.modules, "program", program)
    space = vars(program)
    exec(compile(source, "train.py", "exec"), space)
    single = torch.utils.data.dataloader._SingleProcessDataLoaderIter
    multi = torch.utils.data.dataloader._MultiProcessingDataLoaderIter
    with monkeypatch.context() as patched:
        for kind in (single, multi):
            bare = kind._next_data
            patched.setattr(kind, "_next_data", lambda it, bare=bare: gate.step(it, bare))
        body = source[source.index("    loader = make_loader()") :]
        loop = compile("if True:\n" + body, "train.py", "exec")
        with pytest.raises(KeyboardInterrupt):
            exec(loop, space)
    return gate.events


@pytest.fixture(autouse=True)
def streams() -> Iterator[None]:
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    yield
    random.setstate(states[0])
    np.random.set_state(states[1])
    torch.set_rng_state(states[2])


@pytest.fixture
def base(mutants: Any, monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    return events_of(mutants.BASE, monkeypatch)


def test_every_mutant_is_seen(mutants, base, monkeypatch):
    assert len(mutants.MUTANTS) >= 60
    assert sum(what == "batch" for what, _ in base) == BATCHES
    unseen = []
    for mutant in mutants.MUTANTS:
        found = first_difference(base, events_of(mutants.source_of(mutant), monkeypatch), False)
        if found is None:
            unseen.append(mutant.name)
    assert unseen == []


def test_what_changes_no_batch_is_the_same(mutants, base, monkeypatch):
    for mutant in mutants.SAME:
        events = events_of(mutants.source_of(mutant), monkeypatch)
        assert first_difference(base, events, False) is None, mutant.name
    assert first_difference(base, base, True) is None
