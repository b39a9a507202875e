"""What other programs take of the CPUs is seen, and what this run itself takes is not among it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders import MS, T0, RunBuilder, loop
from loaderscope.advisors.stage_model.other_programs import others_share
from loaderscope.advisors.whatif import WhatIf
from loaderscope.advisors.whatif.workload import workload_of
from loaderscope.profiler.store.run.run_reader import open_run

S = 1_000 * MS


def recorded(
    runs: Path,
    busy_pct: float,
    *,
    seconds: float = 10.0,
    main_cores: float = 1.0,
    machine: dict[str, Any] | None = None,
    cores: list[float] | None = None,
    cpus: str | None = None,
    ranks: int | None = None,
    **host: Any,
) -> Any:
    """A loop of 10 s without workers, which fetches for 40 ms of each 50 ms step, on a machine of
    eight cores."""
    run = RunBuilder(runs)
    facts: dict[str, Any] = {"local_world_size": ranks} | ({} if cpus is None else {"cpus": cpus})
    run.process(**facts).loader(
        loop(200, 40, 10, fetch_ns=40 * MS, fetch_cpu_ns=40 * MS), config={"num_workers": 0}
    )
    times = [T0 + round(n * seconds / 20 * S) for n in range(21)]
    run.system(
        machine=[
            {
                "t_ns": t,
                "cpu_user_pct": busy_pct - 5,
                "cpu_system_pct": 5.0,
                "cpu_idle_pct": 100 - busy_pct,
                "cpu_iowait_pct": 0.0,
                "sampler_cpu_ns": 0,
                **(machine or {}),
            }
            for t in times
        ],
        process=[
            {
                "t_ns": t,
                "pid": 4000,
                "owner_pid": 4000,
                "role": 0,
                "loader": -1,
                "worker": -1,
                "cpu_user_ns": round((t - T0) * main_cores),
                "cpu_system_ns": 0,
                "run_delay_ns": 0,
            }
            for t in times
        ],
        core=[{"t_ns": t, "busy_pct": cores or [busy_pct] * 8} for t in times if cores != []],
        **host,
    )
    return open_run(run.path)


def share(run: Any) -> float | None:
    return others_share(run, run.processes[0], run.loaders[0])


QUOTA = {"version": 2, "cpu_quota": 4.0, "mem_limit_bytes": None}
STOLEN = {"cpu_user_pct": 12.5, "cpu_system_pct": 0.0, "cpu_idle_pct": 37.5}
OTHERS = [100.0, 100.0, 0.0, 0.0, 100.0, 100.0, 100.0, 100.0]


@pytest.mark.parametrize(
    ("busy_pct", "how", "others"),
    [
        (12.5, {}, 0.0),  # what the run itself uses
        (62.5, {}, 0.5),
        (75.0, {"cores": OTHERS, "cpus": "0-3"}, 0.25),  # only the cores it may use count
        (62.5, {"cgroup": QUOTA}, 0.0),  # others may use what a quota leaves
        (87.5, {"cgroup": QUOTA}, 0.5),
        (12.5, {"machine": STOLEN}, 0.0),  # what the hypervisor took is nobody's
        (62.5, {"machine": STOLEN, "cores": [100.0] * 8, "cpus": "0-1"}, 0.0),  # and counts as busy
        (50.0, {"seconds": 0.3}, None),
        (50.0, {"ranks": 2}, None),
        (50.0, {"cores": [], "cpus": "0-3"}, None),
        (50.0, {"machine": {"cpu_user_pct": float("nan")}}, None),
    ],
)
def test_busy_cores_beyond_its_own_are_others(
    runs_dir: Path, busy_pct: float, how: dict[str, Any], others: float | None
) -> None:
    found = share(recorded(runs_dir, busy_pct, **how))
    assert found == (None if others is None else pytest.approx(others, abs=1e-6))


def test_workers_that_would_share_their_cores_bring_less(runs_dir: Path) -> None:
    def predicted(busy_pct: float) -> Any:
        run = recorded(runs_dir / f"{busy_pct}", busy_pct)
        whatif = WhatIf(workload_of(run, run.processes[0], run.loaders[0]))
        return whatif.predict(num_workers=2), whatif.predict(fetch=0.5), whatif.busy_beside

    alone, faster, none = predicted(12.5)
    beside, as_fast, cores = predicted(62.5)
    assert (none, cores) == (0.0, pytest.approx(4.0))
    assert beside.mid == pytest.approx(0.75 * alone.mid)
    assert beside.high / beside.low > alone.high / alone.low
    assert as_fast.mid == pytest.approx(faster.mid)
