"""Waiting for a core, told apart from waiting for I/O."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders import MS, T0, RunBuilder, loop
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.stage_model.core_wait import core_wait_ratio, waiting_besides_core
from loaderscope.profiler.store.run.run_reader import open_run

S = 1_000 * MS


def sample(
    at_s: float, pid: int, role: int, cpu_s: float, delay_s: float, **values: Any
) -> dict[str, Any]:
    return {
        "t_ns": T0 + round(at_s * S),
        "pid": pid,
        "owner_pid": 4000,
        "role": role,
        "loader": 0 if role else -1,
        "worker": 0 if role else -1,
        "cpu_user_ns": round(cpu_s * S),
        "cpu_system_ns": 0,
        "run_delay_ns": round(delay_s * S),
        **values,
    }


def recorded(runs: Path, samples: list[dict[str, Any]]) -> Any:
    run = RunBuilder(runs)
    run.process().loader(
        loop(100, 50, 50, fetch_ns=40 * MS, fetch_cpu_ns=10 * MS, t_fetch_ns=lambda n, t, w: t),
        config={"num_workers": 2},
    )
    run.system(machine=[{"t_ns": T0 + n * S} for n in range(10)], process=samples)
    return open_run(run.path)


def ratio(run: Any, in_main: bool = False) -> float | None:
    return core_wait_ratio(run, run.processes[0], run.loaders[0], in_main=in_main)


def test_the_ratio_is_of_waiting_ready_to_waiting_ready_and_computing(runs_dir: Path) -> None:
    workers = [
        sample(t, 5001 + n, 1, cpu_s=3 * n + t * 0.2, delay_s=1 - n + t * 0.6)
        for n in (0, 1)
        for t in (1, 4, 9)
    ]
    main = [sample(t, 4000, 0, cpu_s=t * 0.9, delay_s=t * 0.1) for t in (1, 9)]
    run = recorded(runs_dir, [*workers, *main])
    assert ratio(run) == pytest.approx(0.75)
    assert ratio(run, in_main=True) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([], None),
        ([sample(1, 5001, 1, cpu_s=1, delay_s=1)], None),  # one sample says nothing of growth
        # Not counted on this system.
        ([sample(t, 5001, 1, cpu_s=t, delay_s=t, run_delay_ns=-1) for t in (1, 9)], None),
        ([sample(t, 5001, 1, cpu_s=t * 0.001, delay_s=t) for t in (1, 9)], None),  # hardly computed
        # Samples outside the loop do not count.
        ([sample(t, 5001, 1, cpu_s=t, delay_s=100 * (t == 20)) for t in (1, 9, 20)], 0),
    ],
)
def test_what_was_not_measured_is_unknown(
    runs_dir: Path, samples: list[dict[str, Any]], expected: float | None
) -> None:
    assert ratio(recorded(runs_dir, samples)) == expected


def test_the_report_divides_idle_time_into_waiting_for_a_core_and_the_rest(runs_dir: Path) -> None:
    samples = [sample(t, 5001, 1, cpu_s=t * 0.2, delay_s=t * 0.2) for t in (1, 4, 9)]
    waiting = build_report(recorded(runs_dir, samples)).loaders[0].waiting
    assert waiting is not None and waiting.fetch_idle_share == pytest.approx(0.75)
    # 10 ms of CPU time took 20 ms of a shared core.
    assert waiting.fetch_core_wait_share == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("idle", "ratio", "left"),
    [(0.75, 0.5, 0.5), (0.75, 0.0, 0.75), (0.75, 0.9, 0.0), (0.75, None, 0.75), (None, 0.5, None)],
)
def test_what_is_left_is_never_negative(
    idle: float | None, ratio: float | None, left: float | None
) -> None:
    found = waiting_besides_core(idle, ratio)
    assert found == (None if left is None else pytest.approx(left))
