"""The share of waiting, and of waiting while a later batch was ready."""

from __future__ import annotations

import numpy as np
import pytest

from loaderscope.advisors.stage_model.shares import blocked_share, waiting_share


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
