"""Costs that were not measured: carried over from the reference machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders import RunBuilder, loop
from loaderscope.advisors.whatif.costs import (
    FASTEST,
    REFERENCE_HOOK_NS,
    SLOWEST,
    handover,
    method_of,
    speed_of,
    start_ns,
)
from loaderscope.profiler.run import LoaderRun, open_run


def loader(tmp_path: Path, hook_ns: float | None, workers: int = 0) -> LoaderRun:
    run = RunBuilder(tmp_path)
    run.process().loader(loop(3), config={"num_workers": workers}, overhead={"hook_ns": hook_ns})
    return open_run(run.path).loaders[0]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_machine_is_as_slow_as_its_hooks_within_bounds(tmp_path: Path, workers: int) -> None:
    reference = REFERENCE_HOOK_NS[workers > 0]
    for number, (hook_ns, speed) in enumerate(
        [(reference, 1.0), (reference * 1.5, 1.5), (reference * 50, SLOWEST), (1.0, FASTEST), (None, 1.0), (0.0, 1.0)]
    ):
        assert speed_of(loader(tmp_path / str(number), hook_ns, workers)) == pytest.approx(speed)


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
def test_the_start_method_told_or_the_default(told: object, python: str | None, method: str) -> None:
    assert method_of(told, python) == method
