"""Random numbers while settings change: those of the training process stay what they would have been.

Making an iterator draws a seed for its workers, from the loader's generator or from torch's own. An untuned run does so
once an epoch (or once, with persistent workers), and so does a tuned one; the seeds of further pools come from a stream
apart. So does what a data set draws in the training process where the user's own settings have workers for that.
"""

from __future__ import annotations

import hashlib
import random
import sys
from typing import Any

from .apart import used_here


def epoch_seed(loader: Any) -> int:
    """The seed that torch would draw for an epoch's workers, drawn as torch does."""
    import torch

    return int(torch.empty((), dtype=torch.int64).random_(generator=loader.generator).item())


def numbered_seed(loader: Any, number: int) -> int:
    """The seed of a loader's further pool of this number: from no stream that anybody else draws from, and the same
    each time that a program runs with the same seeds."""
    import torch

    told = loader.generator.initial_seed() if loader.generator is not None else torch.initial_seed()
    return int.from_bytes(hashlib.blake2b(f"{told} {number}".encode(), digest_size=7).digest(), "big")


def fresh_generator(seed: int) -> Any:
    """A generator of its own, from which torch draws a pool's seed."""
    import torch

    return torch.Generator().manual_seed(seed)


def fetching_apart(iterator: Any, seed: int) -> None:
    """This iterator makes its batches in the training process, with random streams of their own."""
    fetcher = iterator._dataset_fetcher
    fetcher.dataset = used_here(fetcher.dataset)
    fetcher.fetch = _Apart(fetcher, seed)


class _Apart:
    """A fetcher's `fetch`, between two changes of all random states."""

    def __init__(self, fetcher: Any, seed: int) -> None:
        # Of the class: the attribute of this name is this very object.
        self._fetch, self._fetcher = type(fetcher).fetch, fetcher
        self._states = _seeded(seed)

    def __call__(self, index: Any) -> Any:
        outside = _states()
        _put(self._states)
        try:
            return self._fetch(self._fetcher, index)
        finally:
            self._states = _states()
            _put(outside)


def _states() -> tuple[Any, Any, Any]:
    import torch

    numpy = sys.modules.get("numpy")
    return torch.get_rng_state(), random.getstate(), numpy.random.get_state() if numpy is not None else None


def _put(states: tuple[Any, Any, Any]) -> None:
    import torch

    torch.set_rng_state(states[0])
    random.setstate(states[1])
    if states[2] is not None:
        sys.modules["numpy"].random.set_state(states[2])


def _seeded(seed: int) -> tuple[Any, Any, Any]:
    import torch

    numpy = sys.modules.get("numpy")
    state = torch.Generator().manual_seed(seed).get_state()
    own = numpy.random.RandomState(seed % 2**32).get_state() if numpy is not None else None
    return state, random.Random(seed).getstate(), own
