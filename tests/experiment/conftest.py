"""The mutants of the benchmark, and what a loop is handed of a program."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import loaderscope
from loaderscope.experiment.side import Gate, _hook

FOLDER = Path(loaderscope.__file__).resolve().parent / "benchmarks"


@pytest.fixture(scope="session")
def mutants() -> Any:
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(FOLDER)
        import try_mutants

        yield try_mutants


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


@pytest.fixture
def listener() -> Callable[..., Listener]:
    """Hooks torch's iterators as a side does, until the patch ends."""

    def hooked(patched: pytest.MonkeyPatch, batches: int = sys.maxsize) -> Listener:
        made, module = Listener(batches), torch.utils.data.dataloader
        for name in ("_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"):
            kind = getattr(module, name)
            patched.setattr(kind, "_next_data", kind._next_data)
            _hook(module.__name__, name, made)
        return made

    return hooked
