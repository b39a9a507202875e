"""Ranks counted from the processes that recorded."""

import pytest

from builders import RunBuilder, epoch_row, loop
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.profiler.store.run.run_reader import open_run


def job(path, *processes, **system):
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


PINNED = [
    {"rank": r, "world_size": 2, "affinity": 4, "cpus": c} for r, c in enumerate(("0-3", "4-7"))
]
QUOTA = {"version": 2, "cpu_quota": 6.0, "mem_limit_bytes": None}


@pytest.mark.parametrize(
    ("processes", "system", "ranks", "cpus"),
    [
        # No launcher counted them.
        ([{"rank": rank, "world_size": 2} for rank in range(2)], {}, [(0, 2), (1, 2)], 4.0),
        # With other hosts the local rank is not known.
        ([{"rank": r, "world_size": 4} for r in (2, 3)], {}, [(None, 2), (None, 2)], 4.0),
        # A launcher's count stands.
        (
            [{"rank": 1, "world_size": 8, "local_rank": 1, "local_world_size": 4}],
            *({}, [(1, 4)], 2.0),
        ),
        # Ranks pinned to CPUs of their own have those, within a quota.
        (PINNED, {"cgroup": QUOTA}, [(0, 2), (1, 2)], 3.0),
        # Ranks on the same CPUs share them.
        (
            [{"rank": r, "world_size": 4, "affinity": 8, "cpus": "0-7"} for r in range(4)],
            *({}, [(r, 4) for r in range(4)], 2.0),
        ),
        ([{}] * 4, {}, [(None, None)] * 4, 2.0),
    ],
)
def test_ranks_of_a_host_and_the_cpus_of_each(tmp_path, processes, system, ranks, cpus):
    assert job(tmp_path, *processes, **system) == (ranks, cpus)
