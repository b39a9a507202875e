"""cpu-budget: more workers than CPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loaderscope.advisors.case.case import Case
from rule_cases import FakeWhatIf, advice, arguments, case_of, outcomes, workers_config
from rule_rows import host_samples, worker_loop
from silence import silent

NAME = "cpu-budget"


def crowded(
    path: Path,
    workers: int = 8,
    cores: float = 0.22,
    affinity: int = 2,
    pack_ms: float = 0.2,
    answer: Any = lambda num_workers: 1.2 if num_workers else 0.5,
    quota: float | None = None,
    **machine: Any,
) -> Case:
    rows = worker_loop(500, wait_ms=9.0, compute_ms=1.0, fetch_ms=75.0, cpu=0.25, pack_ms=pack_ms)
    system: dict[str, Any] = host_samples(workers=workers, worker_cores=cores)
    for n, row in enumerate(system["machine"]):
        row.update({name: value(n) for name, value in machine.items()})
    cgroup = {"version": 2, "cpu_quota": quota, "mem_limit_bytes": None}
    system |= {"affinity": affinity, "cgroup": cgroup}
    facts: Any = {"process": {"affinity": affinity}, "config": workers_config(workers)}
    return case_of(path, rows, whatif=FakeWhatIf(answer), system=system, **facts)


def test_fires_where_all_cpus_are_in_use(tmp_path: Path) -> None:
    case = crowded(tmp_path)
    found = advice(NAME, case)
    assert found.params == {"num_workers": 1}  # all are predicted alike: the fewest
    assert arguments(found.code)["num_workers"] == "1"
    assert str(found.evidence["effective CPUs"]) == "2 cores"
    assert outcomes("num-workers", case) == []  # it does not say the same twice


def test_fires_where_the_quota_throttles(tmp_path: Path) -> None:
    case = crowded(
        tmp_path, affinity=16, cores=0.1, quota=2.0, cgroup_throttled_ns=lambda n: n * 300_000_000
    )
    assert str(advice(NAME, case).evidence["throttled"]) == "30 % of the time"


test_silent_one_step_away = silent(
    NAME,
    crowded,
    {"workers": 2, "cores": 0.9},
    {"affinity": 8},
    {"cores": 0.1},
    {"answer": 1.0},
    {"pack_ms": 200.0},
)
