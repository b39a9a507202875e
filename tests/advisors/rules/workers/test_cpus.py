"""cpu-budget: more workers than CPUs. thread-oversubscription: library threads that fight for the
CPUs inside workers."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from loaderscope.advisors.case.case import Case
from loaderscope.advisors.schema.report_model import Code, CodeStage, Doing
from rule_cases import (
    FakeWhatIf,
    advice,
    arguments,
    asked,
    case_of,
    outcomes,
    ran,
    shown,
    workers_config,
)
from rule_rows import host_samples, worker_loop
from silence import silent

BUDGET = "cpu-budget"


def alike(num_workers: int) -> float:
    return 1.2 if num_workers else 0.5


def crowded(
    path, workers=8, cores=0.22, affinity=2, pack_ms=0.2, answer=alike, quota=None, **machine
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
    found = advice(BUDGET, case)
    assert found.params == {"num_workers": 1}  # all are predicted alike: the fewest
    assert arguments(found.code)["num_workers"] == "1"
    assert shown(found, "effective CPUs") == ("2 cores",)
    assert outcomes("num-workers", case) == []  # it does not say the same twice


def test_fires_where_the_quota_throttles(tmp_path: Path) -> None:
    throttled = {"quota": 2.0, "cgroup_throttled_ns": lambda n: n * 300_000_000}
    found = advice(BUDGET, crowded(tmp_path, affinity=16, cores=0.1, **throttled))
    assert shown(found, "throttled") == ("30 % of the time",)


test_the_budget_is_silent = silent(
    BUDGET,
    crowded,
    {"workers": 2, "cores": 0.9},
    {"affinity": 8},
    {"cores": 0.1},
    {"answer": 1.0},
    {"pack_ms": 200.0},
)


THREADS = "thread-oversubscription"


def busy_case(path, affinity=2, cpu=0.5, config=None, **host) -> Case:
    rows = worker_loop(500, wait_ms=9.0, compute_ms=1.0, fetch_ms=19.0, cpu=cpu)
    samples = host_samples(**{"worker_cores": 0.9, "threads": 6, **host})
    own = {"affinity": affinity}
    told = {**workers_config(2), **(config or {})}
    return case_of(path, rows, process=own, config=told, system=samples | own)


def test_fires_for_threads_beside_the_fetching_one(tmp_path: Path) -> None:
    case = busy_case(tmp_path)
    found = advice(THREADS, case)
    assert arguments(found.code)["worker_init_fn"] == "one_thread"
    assert shown(found, "threads per worker", "CPU of a worker") == ("6", "0.9 cores")
    (question,) = asked(case)
    assert question["fetch"][0] < question["fetch"][1] < 1
    # The code limits this process.
    with patch.dict(os.environ):
        space = ran(found.code, dataset=torch.arange(8))
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        space["one_thread"](0)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
    assert space["loader"].worker_init_fn is space["one_thread"]


test_threads_are_silent = silent(
    THREADS,
    busy_case,
    {"threads": 3},
    {"cpu": 0.9, "worker_cores": 0.95},
    {"affinity": 8, "cpu_idle_pct": 60.0},
    {"config": {"start_method": "spawn"}, "threads": 4},
)


def test_threads_that_work_while_the_fetching_one_waits_do_not_compete(tmp_path: Path) -> None:
    case = busy_case(tmp_path)
    for core, said in ((0.1, 0), (0.4, 1)):
        doing = Doing("threads", None, 1, 0.6), Doing("core", None, 1, core)
        code = Code(1, 40, 8.0, 25.0, {"fetch": CodeStage(40, None, (), (), {}, (), doing)})
        found = outcomes(THREADS, replace(case, report=replace(case.report, code=code)))
        assert len(found) == said


def test_an_existing_init_function_is_not_lost(tmp_path: Path) -> None:
    found = advice(THREADS, busy_case(tmp_path, config={"worker_init_fn": "train.seed_all"}))
    assert "worker_init_fn" in (found.caveat or "")
    # It limits after what that one set.
    yours = found.code.index("(worker_id)  # yours")
    assert yours < found.code.index("torch.set_num_threads(1)")
