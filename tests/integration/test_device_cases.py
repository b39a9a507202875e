"""The device's figures and advice on the stand-in: the quick part of benchmarks/device.py."""

from __future__ import annotations

import pytest

import standin_device as standin
from judged_cases import LIMIT_S, told


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S)
@pytest.mark.skipif(standin.missing() is not None, reason="no stand-in with this torch")
def test_planted_causes_come_first_and_every_figure_is_compared() -> None:
    found = told("device.py", "--quick", "--patience", "0", codes=(0, 1))
    summary, device = found["summary"], found["summary"]["device"]
    assert summary["planted"] >= 7 and summary["healthy"] >= 3 and not summary["failed"]
    assert (
        summary["first_right_share"] == 1
        and not summary["false_alarms"]
        and not summary["forbidden"]
    ), summary
    assert device["synchronised_added"] == 0 and device["reached"]["verdicts"]
    assert set(device["errors"]) == {"h2d_ns", "stall_ns", "compute_device_ns"}
    assert None not in device["errors"].values()
