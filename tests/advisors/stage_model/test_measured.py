"""Means and shares of what was measured: a negative value was not."""

from __future__ import annotations

import numpy as np
import pytest

from loaderscope.advisors.stage_model.block_error import BLOCKS, block_sums, ratio
from loaderscope.advisors.stage_model.measured import low, mean, measured, peak
from loaderscope.advisors.stage_model.shares import blocked_share, waiting_share


def test_what_was_not_measured_counts_for_nothing() -> None:
    values = np.array([-1, 4, 0, -1, 2], dtype=np.int32)
    assert measured(values).tolist() == [4, 0, 2]
    assert (mean(values), low(values), peak(values)) == (2.0, 0, 4)
    nothing = values[values < 0]
    assert (mean(nothing), low(nothing), peak(nothing)) == (None, None, None)


def test_a_mean_of_large_numbers_does_not_overflow() -> None:
    assert mean(np.full(4, 2**31 - 1, dtype=np.int32)) == 2**31 - 1


def test_blocks_hold_every_value_once() -> None:
    for count in (1, 2, 3, 39, 40, 41, 1000):
        sums = block_sums(np.arange(float(count)))
        assert len(sums) == max(1, min(BLOCKS, count // 2))
        assert sums.sum() == sum(range(count))


def test_the_error_of_a_ratio_is_that_of_independent_blocks() -> None:
    """Against the spread of the ratio over many runs of the same kind."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(300):
        below = rng.gamma(20.0, 1.0, 200)
        found.append(ratio(block_sums(below * rng.normal(0.3, 0.1, 200)), block_sums(below)))
    values, errors = np.array(found).T
    assert abs(values.mean() - 0.3) < 0.003
    assert 0.85 < errors.mean() / values.std() < 1.15


def test_waiting_share() -> None:
    assert waiting_share(np.array([1.0, 2.0]), np.array([4.0, 8.0])) == 0.25
    assert waiting_share(np.zeros(0), np.zeros(0)) == 0.0


@pytest.mark.parametrize(
    ("ready", "unpack", "share"),
    [([0, 2, 0], 0, 0.5), ([0, 2, -1], 0, 2 / 3), ([0, 1, 0], 20, 0.75), ([-1, -1, -1], 0, None)],
)
def test_blocked_share(ready: list[int], unpack: int, share: float | None) -> None:
    """Batches whose readiness is not known do not count; unpacking is no waiting for a batch."""
    columns = {
        "wait_ns": np.array([20, 40, 20]),
        "ready": np.array(ready),
        "unpack_ns": np.array([min(unpack, 20), 10 if unpack else 0, 10 if unpack else 0]),
        "pin_ns": np.array([-1, -1, -1]),
    }
    assert blocked_share(columns) == (pytest.approx(share) if share is not None else None)
