"""Batches of each library, sent to the stand-in as its users do: every tensor is seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import standin_device
from running import needs, program, recorded

pytestmark = pytest.mark.timeout(600)

# A batch of four: 300 floats and a number each; of graphs, also which node is of which, and where each begins.
TWO = (2, 4 * (300 * 4 + 8))
LIBRARIES = {
    "tensordict": TWO,
    "transformers": TWO,
    "accelerate": TWO,
    "lightning": TWO,
    "torch_geometric": (4, TWO[1] + 4 * 8 + 5 * 8),
}


@pytest.mark.skipif(standin_device.missing() is not None, reason="no stand-in with this torch")
@pytest.mark.parametrize("library", LIBRARIES)
def test_all_tensors_of_a_batch_are_seen(library: str, tmp_path: Path) -> None:
    needs(library)
    run, *_ = recorded(tmp_path / "runs", *program("copied_batches.py", library))
    (loader,) = run.loaders
    copies, sizes = loader.batches["h2d_copies"], loader.batches["h2d_bytes"]
    seen = np.flatnonzero(copies >= 0)[2:]  # the device is noticed in the first
    assert len(seen) >= 8
    assert {(int(copies[row]), int(sizes[row])) for row in seen} == {LIBRARIES[library]}
    assert (loader.batches["h2d_ns"][seen] > 0).all()
    assert loader.device_steps is not None
    # Of the program's own lines, whoever calls `to` in the end.
    (copied,) = loader.device_steps.copies
    assert copied.place.startswith("copied_batches.py:") and copied.a_step == LIBRARIES[library][0]
