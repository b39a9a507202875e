"""Which batches of other settings are made again, and what it took."""

from __future__ import annotations

import time

import pytest
import torch

from loaderscope.tuning.evidence.settings import Settings
from loaderscope.tuning.switch.comparison import SpotChecks, Unequal

ONE, OTHER = Settings(2), Settings(3)


def test_ever_fewer_are_made_again_and_the_first_after_each_change() -> None:
    checks, made = SpotChecks(), []

    def run(settings: Settings, batches: int) -> list[int]:
        made.clear()
        for number in range(batches):
            checks.checked(
                settings,
                number,
                torch.tensor([number]),
                lambda n: made.append(n) or torch.tensor([n]),
            )
        return [*made]

    assert run(ONE, 9) == [0, 1, 3, 7]
    assert run(OTHER, 3) == [0, 1]
    checks.unneeded()
    assert run(ONE, 9) == [0, 6]  # its tenth, for it comes after a change, and its 16th
    assert run(OTHER, 2) == [0]  # its fourth


def test_how_long_it_took_is_known_of_the_batch_handed_over_last() -> None:
    checks, batch = SpotChecks(), torch.zeros(2)

    def slowly(index: int) -> torch.Tensor:
        time.sleep(0.02)
        return batch.clone()

    assert checks.took_ns == 0
    checks.checked(ONE, 0, batch, slowly)
    assert checks.took_ns >= 20_000_000
    checks.checked(ONE, 1, batch, lambda index: None)  # nobody can make it again
    assert checks.took_ns == 0
    checks.checked(OTHER, 2, batch, slowly)
    checks.unneeded()
    assert checks.took_ns == 0
    with pytest.raises(Unequal):
        checks.checked(ONE, 3, batch, lambda index: batch + 1)
