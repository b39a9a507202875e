"""Ranks counted from the processes that recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders import RunBuilder, epoch_row, loop
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.profiler.store.run.run_reader import open_run


def job(
    path: Path, *processes: dict[str, Any], **system: Any
) -> tuple[list[tuple[int | None, int | None]], float]:
    """((local rank, ranks on the host) a process, effective CPUs)."""
    run = RunBuilder(path)
    for number, facts in enumerate(processes):
        rows = loop(30)
        run.process(pid=4000 + number, **facts).loader(rows, epochs=[epoch_row(rows)])
    run.system(machine=[{"t_ns": 0}, {"t_ns": 10**9}], **system)
    read = open_run(run.path)
    cpus = build_report(read).system.effective_cpus
    assert cpus is not None
    return [(p.local_rank, p.local_world_size) for p in read.processes], cpus


def test_ranks_that_no_launcher_counted(tmp_path: Path) -> None:
    spawned = [{"rank": rank, "world_size": 2} for rank in range(2)]
    assert job(tmp_path, *spawned) == ([(0, 2), (1, 2)], 4.0)


def test_with_other_hosts_the_local_rank_stays_open(tmp_path: Path) -> None:
    here = [{"rank": rank, "world_size": 4} for rank in (2, 3)]
    assert job(tmp_path, *here) == ([(None, 2), (None, 2)], 4.0)


def test_a_launchers_count_stands(tmp_path: Path) -> None:
    told = [{"rank": 1, "world_size": 8, "local_rank": 1, "local_world_size": 4}]
    assert job(tmp_path, *told) == ([(1, 4)], 2.0)


def test_ranks_pinned_to_cpus_of_their_own_have_those(tmp_path: Path) -> None:
    pinned = [
        {"rank": r, "world_size": 2, "affinity": 4, "cpus": c} for r, c in enumerate(("0-3", "4-7"))
    ]
    assert job(tmp_path, *pinned, affinity=4)[1] == 4.0


def test_a_quota_is_shared_by_pinned_ranks_too(tmp_path: Path) -> None:
    pinned = [
        {"rank": r, "world_size": 2, "affinity": 4, "cpus": c} for r, c in enumerate(("0-3", "4-7"))
    ]
    quota = {"version": 2, "cpu_quota": 6.0, "mem_limit_bytes": None}
    assert job(tmp_path, *pinned, cgroup=quota)[1] == 3.0


def test_ranks_on_the_same_cpus_share_them(tmp_path: Path) -> None:
    shared = [{"rank": r, "world_size": 4, "affinity": 8, "cpus": "0-7"} for r in range(4)]
    assert job(tmp_path, *shared)[1] == 2.0


@pytest.mark.parametrize(("count", "cpus"), [(1, 8.0), (4, 2.0)])
def test_processes_that_record_at_once_share_the_cpus(
    tmp_path: Path, count: int, cpus: float
) -> None:
    assert job(tmp_path, *[{}] * count)[1] == cpus
