"""Random streams around fetches that the training process makes for workers: whatever is drawn is put back."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from loaderscope.tuning import random_streams
from loaderscope.tuning.random_streams import WATCHED, _Apart, _words_of


class Fetcher:
    """Draws from the 20th fetch on, as an augmentation that is switched on late."""

    def __init__(self, draw: Callable[[], Any]) -> None:
        self.draw, self.fetches = draw, 0

    def fetch(self, index: Any) -> Any:
        self.fetches += 1
        return self.draw() if self.fetches >= 20 else None


def states() -> list[Any]:
    return [torch.get_rng_state().tolist(), random.getstate(), *map(str, np.random.get_state()[1:3])]


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize(
    "draw",
    [
        random.random,
        lambda: random.gauss(0, 1),
        lambda: [random.random() for _ in range(700)],  # past the end of its words
        lambda: torch.rand(3),
        lambda: np.random.rand(2),
    ],
)
def test_what_a_late_draw_moves_is_put_back(
    draw: Callable[[], Any], in_place: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not in_place:
        monkeypatch.setattr(random_streams, "_words_of", lambda generator: None)
    torch.manual_seed(3)
    random.seed(4)
    np.random.seed(5)
    random.gauss(0, 1)  # half of a pair is kept
    fetcher = Fetcher(draw)
    apart = _Apart(fetcher, 7)
    drawn = []
    for number in range(24):
        before = states()
        drawn.append(str(apart(number)))
        assert states() == before
    assert WATCHED < 20 and len(set(drawn[20:])) == 4  # from a stream of its own, which goes on
    outside = [torch.rand(1).item(), random.random(), random.gauss(0, 1)]
    torch.manual_seed(3)
    random.seed(4)
    random.gauss(0, 1)
    assert [torch.rand(1).item(), random.random(), random.gauss(0, 1)] == outside


def test_what_is_no_generator_of_python_s_own_is_not_read_in_place() -> None:
    class Other(random.Random):
        def getstate(self) -> Any:
            return 3, (*range(624), 0), None

    assert _words_of(random.Random(1)) is not None
    assert _words_of(Other(1)) is None
