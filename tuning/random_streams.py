"""Random numbers while settings change: those of the training process stay what they would have been.

Making an iterator draws a seed for its workers, from the loader's generator or from torch's own. An untuned run does so
once an epoch (or once, with persistent workers), and so does a tuned one; the seeds of further pools come from a stream
apart. So does what a data set draws in the training process where the user's own settings have workers for that.
"""

from __future__ import annotations

import ctypes
import hashlib
import random
import struct
import sys
from typing import Any

from .apart import used_here

WATCHED = 16
MT19937 = "=625I"  # its key of 624 words, and where in it the next number is: NumPy has that last, Python first
MT19937_BYTES = struct.calcsize(MT19937)


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
    """A fetcher's `fetch`, in which random numbers come from other streams than outside of it."""

    def __init__(self, fetcher: Any, seed: int) -> None:
        # Of the class: the attribute of this name is this very object.
        self._fetch, self._fetcher = type(fetcher).fetch, fetcher
        self._streams = _seeded(seed)
        self._fetches = 0

    def __call__(self, index: Any) -> Any:
        watched, self._fetches = self._fetches < WATCHED, self._fetches + 1
        before = [each.enter(watched) for each in self._streams]
        try:
            return self._fetch(self._fetcher, index)
        finally:
            for each, outside in zip(self._streams, before, strict=True):
                each.leave(outside)


class _Stream:
    """One library's random numbers. `WATCHED` fetches long they have a state of their own; after that where one of
    those drew any. Where none did, what is there is left in place, and put back should a later fetch draw after all:
    exchanging all states takes 0.14 ms, a quick batch less."""

    def __init__(self, inside: Any) -> None:
        self._inside = inside
        self._drawn = self._whole = False

    def enter(self, watched: bool) -> Any:
        self._whole = watched or self._drawn
        if not self._whole:
            return self.glance()
        outside = self.state()
        self.put(self._inside)
        return outside

    def leave(self, outside: Any) -> None:
        if self._whole:
            inside = self.state()
            self._drawn = self._drawn or not self.same(inside, self._inside)
            self._inside = inside
            self.put(outside)
        elif not self.same(self.glance(), outside):
            self._drawn = True
            self.put_back(outside)

    def state(self) -> Any:
        raise NotImplementedError

    def put(self, state: Any) -> None:
        raise NotImplementedError

    def same(self, one: Any, other: Any) -> bool:
        return bool(one == other)

    # What is enough to tell that something was drawn, and to undo it.

    def glance(self) -> Any:
        return self.state()

    def put_back(self, glance: Any) -> None:
        self.put(glance)


class _Torch(_Stream):
    def state(self) -> Any:
        import torch

        return torch.get_rng_state()

    def put(self, state: Any) -> None:
        import torch

        torch.set_rng_state(state)

    def same(self, one: Any, other: Any) -> bool:
        import torch

        return bool(one == other) if type(one) is bytes else torch.equal(one, other)

    def glance(self) -> bytes:
        held: bytes = self.state().numpy().tobytes()
        return held

    def put_back(self, glance: bytes) -> None:
        import torch

        self.put(torch.frombuffer(bytearray(glance), dtype=torch.uint8))


class _Python(_Stream):
    """Its state is read in place, where CPython keeps it: asking for it takes 8 µs, and comparing 6 more."""

    def __init__(self, inside: Any) -> None:
        super().__init__(inside)
        self._random: Any = random.getstate.__self__  # type: ignore[attr-defined]
        self._place = _words_of(self._random)

    def state(self) -> Any:
        return random.getstate()

    def put(self, state: Any) -> None:
        random.setstate(state)

    def glance(self) -> Any:
        if self._place is None:
            return self.state()
        return ctypes.string_at(self._place, MT19937_BYTES), self._random.gauss_next

    def put_back(self, glance: Any) -> None:
        if self._place is not None:
            (index, *words), gauss = struct.unpack(MT19937, glance[0]), glance[1]
            glance = random.getstate()[0], (*words, index), gauss
        self.put(glance)


def _words_of(generator: Any) -> int | None:
    """Where this generator of Python's has its state: an index and 624 words, behind what all objects have. None where
    they are not there."""
    place, size = id(generator) + object.__basicsize__, type(generator).__basicsize__
    if sys.implementation.name != "cpython" or size < object.__basicsize__ + MT19937_BYTES:
        return None
    *words, index = generator.getstate()[1]
    found = struct.unpack(MT19937, ctypes.string_at(place, MT19937_BYTES))
    return place if found == (index, *words) else None


class _NumPy(_Stream):
    """Its state is read in place, where NumPy says that it lies: asking for it takes 25 µs."""

    def __init__(self, inside: Any) -> None:
        super().__init__(inside)
        self._random = sys.modules["numpy"].random
        self._generator = self._random.mtrand._rand._bit_generator  # held: it must not go while its place is read
        known = type(self._generator) is self._random.MT19937
        self._place: Any = self._generator.ctypes.state_address if known else None

    def state(self) -> Any:
        return self._random.get_state()

    def put(self, state: Any) -> None:
        self._random.set_state(state)

    def same(self, one: Any, other: Any) -> bool:
        if type(one) is bytes:
            return bool(one == other)
        return bool(one[2:] == other[2:] and (one[1] == other[1]).all())

    def enter(self, watched: bool) -> Any:
        replaced = self._random.mtrand._rand._bit_generator is not self._generator
        return super().enter(watched or replaced or self._place is None)

    def glance(self) -> bytes:
        return ctypes.string_at(self._place, MT19937_BYTES)

    def put_back(self, glance: bytes) -> None:
        ctypes.memmove(self._place, glance, MT19937_BYTES)


def _seeded(seed: int) -> list[_Stream]:
    import torch

    found: list[_Stream] = [
        _Torch(torch.Generator().manual_seed(seed).get_state()),
        _Python(random.Random(seed).getstate()),
    ]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        found.append(_NumPy(numpy.random.RandomState(seed % 2**32).get_state()))
    return found
