"""thread-oversubscription: library threads that fight for the CPUs inside workers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from loaderscope.advisors.case.case import Case
from rule_cases import FakeWhatIf, advice, arguments, asked, case_of, ran, workers_config
from rule_rows import host_samples, worker_loop
from silence import silent

NAME = "thread-oversubscription"


def busy_case(
    path: Path,
    affinity: int = 2,
    workers: int = 2,
    cpu: float = 0.5,
    config: Any = None,
    inspection: Any = None,
    **host: Any,
) -> Case:
    rows = worker_loop(500, wait_ms=9.0, compute_ms=1.0, fetch_ms=19.0, cpu=cpu)
    told = {"workers": workers, "worker_cores": 0.9, "threads": 6, **host}
    facts: Any = {
        "process": {"affinity": affinity},
        "config": {**workers_config(workers), **(config or {})},
        "system": host_samples(**told) | {"affinity": affinity},
    }
    return case_of(path, rows, whatif=FakeWhatIf(1.5), inspection=inspection, **facts)


def test_fires_for_threads_beside_the_fetching_one(tmp_path: Path) -> None:
    case = busy_case(tmp_path)
    found = advice(NAME, case)
    assert arguments(found.code)["worker_init_fn"] == "one_thread"
    assert str(found.evidence["threads per worker"]) == "6"
    assert str(found.evidence["CPU of a worker"]) == "0.9 cores"
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


test_silent_one_step_away = silent(
    NAME,
    busy_case,
    {"threads": 3},
    {"cpu": 0.9, "worker_cores": 0.95},
    {"affinity": 8, "cpu_idle_pct": 60.0},
    {"config": {"start_method": "spawn"}, "threads": 4},
)


def test_an_existing_init_function_is_not_lost(tmp_path: Path) -> None:
    found = advice(NAME, busy_case(tmp_path, config={"worker_init_fn": "train.seed_all"}))
    assert "worker_init_fn" in (found.caveat or "")
    # It limits after what that one set.
    yours = found.code.index("(worker_id)  # yours")
    assert yours < found.code.index("torch.set_num_threads(1)")
