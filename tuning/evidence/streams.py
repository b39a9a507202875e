"""The random number streams of a process: torch's, NumPy's and Python's.

Looking at one takes a microsecond or two, because the states of NumPy and Python are read from
memory.
"""

import ctypes
import hashlib
import random
import struct
import sys
from typing import Any

# a key of 624 words, and where in it the next number is: NumPy has that last, Python first
MT19937 = "=625I"
MT19937_BYTES = struct.calcsize(MT19937)
HALF_BYTES = 16


class Streams:
    """All streams; NumPy's once it is imported. A look differs (!=) from an earlier one exactly if
    numbers were drawn; putting a look back undoes the draws."""

    def __init__(self) -> None:
        self._streams: list[Any] = [_Torch(), _Python()]

    def look(self) -> list[Any]:
        if len(self._streams) == 2 and "numpy" in sys.modules:
            self._streams.append(_NumPy())
        return [each.look() for each in self._streams]

    def put_back(self, looks: list[Any]) -> None:
        for stream, look in zip(self._streams, looks, strict=False):
            if stream.look() != look:
                stream.put_back(look)


class _Torch:
    def look(self) -> Any:
        import torch

        return torch.get_rng_state().numpy().tobytes()

    def put_back(self, look: bytes) -> None:
        import torch

        torch.set_rng_state(torch.frombuffer(bytearray(look), dtype=torch.uint8))


class _Python:
    """Read from CPython's memory: asking takes 8 µs, and comparing 6 more."""

    def __init__(self) -> None:
        self._random: Any = random.getstate.__self__  # type: ignore[attr-defined]
        self._place = _words_of(self._random)

    def look(self) -> Any:
        if self._place is None:
            return random.getstate()
        return ctypes.string_at(self._place, MT19937_BYTES), self._random.gauss_next

    def put_back(self, look: Any) -> None:
        if self._place is None:
            random.setstate(look)
        else:
            ctypes.memmove(self._place, look[0], MT19937_BYTES)
            self._random.gauss_next = look[1]


def _words_of(generator: Any) -> int | None:
    """The address of the state in a generator of Python's: an index and 624 words. None if they are
    not there."""
    place, size = id(generator) + object.__basicsize__, type(generator).__basicsize__
    if size < object.__basicsize__ + MT19937_BYTES:
        return None
    *words, index = generator.getstate()[1]
    found = struct.unpack(MT19937, ctypes.string_at(place, MT19937_BYTES))
    return place if found == (index, *words) else None


class _NumPy:
    """Read from NumPy's memory, with the second half of a pair of normal numbers: asking takes 25
    µs."""

    def __init__(self) -> None:
        self._random = sys.modules["numpy"].random
        self._half = _place_of_half(self._random) or 0
        self._bits: Any = None  # the generator in use, which the program may replace
        self._place = 0

    def look(self) -> Any:
        drawn_from = self._random.mtrand._rand
        bits = drawn_from._bit_generator
        if bits is not self._bits:
            known = self._half and type(bits) is self._random.MT19937
            self._bits, self._place = bits, bits.ctypes.state_address if known else 0
        if not self._place:
            return repr(self._random.get_state(legacy=False)), None, bits
        half = ctypes.string_at(id(drawn_from) + self._half, HALF_BYTES)
        return ctypes.string_at(self._place, MT19937_BYTES), half, bits

    def put_back(self, look: Any) -> None:
        state, half, bits = look
        if half is not None and bits is self._random.mtrand._rand._bit_generator:
            ctypes.memmove(bits.ctypes.state_address, state, MT19937_BYTES)
            ctypes.memmove(id(self._random.mtrand._rand) + self._half, half, HALF_BYTES)


def _place_of_half(of_numpy: Any) -> int | None:
    """Where a `RandomState` stores whether it holds such a half, and which; None if that is not
    found."""
    made = of_numpy.RandomState(0)
    made.standard_normal()
    wanted = struct.pack("=i4xd", 1, made.get_state()[4])
    held = ctypes.string_at(id(made), type(made).__basicsize__)
    found = [
        at
        for at in range(0, len(held) - HALF_BYTES, 8)
        if held[at : at + 4] + bytes(4) + held[at + 8 : at + 16] == wanted
    ]
    return found[0] if len(found) == 1 else None


def epoch_seed(loader: Any) -> int:
    """The seed that torch would draw for an epoch's workers, drawn as torch does."""
    import torch

    return int(torch.empty((), dtype=torch.int64).random_(generator=loader.generator).item())


def numbered_seed(loader: Any, number: int) -> int:
    """The seed of a loader's further pool of this number. It comes from no stream of the program,
    and is the same in each run with the same seeds."""
    import torch

    of = loader.generator.initial_seed() if loader.generator is not None else torch.initial_seed()
    return int.from_bytes(hashlib.blake2b(f"{of} {number}".encode(), digest_size=7).digest(), "big")


def fresh_generator(seed: int) -> Any:
    """A new generator, from which torch draws a pool's seed."""
    import torch

    return torch.Generator().manual_seed(seed)
