"""Whether numbers were drawn is seen, and can be undone."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from loaderscope.tuning.evidence.streams import Streams, epoch_seed, numbered_seed
from switch_data import Rows

DRAWS: dict[str, Callable[[], Any]] = {
    "torch": lambda: torch.rand(1),
    "Python": random.random,
    "Python, half a pair of normal numbers": lambda: random.gauss(0, 1),
    "NumPy": np.random.rand,
    "NumPy, half a pair of normal numbers": np.random.randn,
    "NumPy, integers": lambda: np.random.randint(5),
}


@pytest.mark.parametrize("kind", DRAWS)
def test_a_draw_is_seen_and_put_back(kind: str) -> None:
    streams, draw = Streams(), DRAWS[kind]
    for _ in range(3):  # with and without half a pair left over
        before = streams.look()
        assert streams.look() == before
        first = [draw() for _ in range(3)]
        assert streams.look() != before
        streams.put_back(before)
        assert streams.look() == before and [draw() for _ in range(3)] == first


def test_a_generator_put_in_numpy_s_place_is_looked_at_too() -> None:
    before = np.random.get_bit_generator()
    streams = Streams()
    streams.look()
    try:
        np.random.set_bit_generator(np.random.PCG64(5))
        look = streams.look()
        assert streams.look() == look
        np.random.rand()
        assert streams.look() != look
    finally:
        np.random.set_bit_generator(before)


def test_seeds_are_torch_s_and_further_ones_come_from_nobody_s_stream() -> None:
    for generator in (None, torch.Generator().manual_seed(3)):
        torch.manual_seed(1)
        seed = iter(DataLoader(Rows(4), num_workers=0, generator=generator))._base_seed
        after = (generator or torch.default_generator).get_state()
        torch.manual_seed(1)
        if generator is not None:
            generator.manual_seed(3)
        assert epoch_seed(DataLoader(Rows(4), generator=generator)) == seed
        assert (generator or torch.default_generator).get_state().equal(after)
    torch.manual_seed(1)
    before, loader = Streams().look(), DataLoader(Rows(4))
    seeds = [numbered_seed(loader, number) for number in range(100)]
    assert len({*seeds}) == 100
    assert seeds == [numbered_seed(loader, number) for number in range(100)]
    assert Streams().look() == before
