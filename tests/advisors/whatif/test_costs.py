"""Costs that were not measured: carried over from the reference machine."""

from __future__ import annotations

import pytest

from loaderscope.advisors.whatif.costs import (
    FASTEST,
    REFERENCE_OTHER_NS,
    SLOWEST,
    handover,
    method_of,
    speed_of,
    start_ns,
)


@pytest.mark.parametrize(
    ("factor", "speed"),
    [
        (1.0, 1.0),
        (1.5, 1.0),
        (2.25, 1.5),
        (0.36, 0.6),
        (50.0, SLOWEST),
        (0.001, FASTEST),
        (0.0, 1.0),
        (-3.0, 1.0),
    ],
)
def test_a_machine_is_as_slow_as_torchs_own_lines_within_bounds(
    factor: float, speed: float
) -> None:
    assert speed_of(factor * REFERENCE_OTHER_NS) == pytest.approx(speed)


def test_a_machine_of_unknown_speed_is_the_reference() -> None:
    assert speed_of(None) == 1.0


def test_more_costs_more() -> None:
    small, large = handover(1, 100, 0, 1.0), handover(40, 8e6, 1e6, 1.0)
    for name in ("pack_ns", "unpack_ns", "pin_ns"):
        assert getattr(large, name) > 5 * getattr(small, name)
    assert large.receive_ns == small.receive_ns
    assert handover(1, 100, 0, 2.0).pack_ns == pytest.approx(2 * small.pack_ns)


def test_workers_that_import_share_the_cores() -> None:
    assert start_ns("fork", 0, 2, 1.0) == 0
    assert start_ns("spawn", 1, 2, 1.0) > 10 * start_ns("fork", 1, 2, 1.0)
    assert start_ns("spawn", 8, 2, 1.0) > 3 * start_ns("spawn", 8, 8, 1.0)


@pytest.mark.parametrize(
    ("told", "python", "method"),
    [
        ("spawn", "3.11.2", "spawn"),
        (None, "3.13.9", "fork"),
        (None, "3.14.0", "forkserver"),
        (None, None, "fork"),
        (7, "rubbish", "fork"),
    ],
)
def test_the_start_method_told_or_the_default(
    told: object, python: str | None, method: str
) -> None:
    assert method_of(told, python) == method
