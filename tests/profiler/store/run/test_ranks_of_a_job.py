"""Jobs of several ranks: those of a host counted, a large job in totals, runs of its nodes merged."""

import os

import numpy as np
import pytest

from builders import MS, RunBuilder, epoch_row, loop
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.assemble.job import open_job
from loaderscope.cli import main
from loaderscope.profiler.base.errors import LoaderscopeError
from loaderscope.profiler.store.run.loader_summary import summary_of
from loaderscope.profiler.store.run.merge_runs import merge_runs
from loaderscope.profiler.store.run.run_reader import LARGE, open_run
from rank_cases import rank


def job(path, *processes, **system):
    """((local rank, ranks on the host) a process, effective CPUs)."""
    run = RunBuilder(path)
    for number, facts in enumerate(processes):
        rows = loop(30)
        run.process(pid=4000 + number, **facts).loader(rows, epochs=[epoch_row(rows)])
    run.system(machine=[{"t_ns": 0}, {"t_ns": 10**9}], **system)
    read = open_run(run.path)
    local = [(each.local_rank, each.local_world_size) for each in read.processes]
    return local, build_report(read).system.effective_cpus


COUNTED = {"rank": 1, "world_size": 8, "local_rank": 1, "local_world_size": 4}
PINNED = [
    {"rank": r, "world_size": 2, "affinity": 4, "cpus": f"{4 * r}-{4 * r + 3}"} for r in (0, 1)
]
SHARING = [{"rank": r, "world_size": 4, "affinity": 8, "cpus": "0-7"} for r in range(4)]
QUOTA = {"version": 2, "cpu_quota": 6.0, "mem_limit_bytes": None}


@pytest.mark.parametrize(
    ("processes", "system", "ranks", "cpus"),
    [
        # No launcher counted them.
        ([{"rank": r, "world_size": 2} for r in (0, 1)], {}, [(0, 2), (1, 2)], 4.0),
        # With other hosts the local rank is not known.
        ([{"rank": r, "world_size": 4} for r in (2, 3)], {}, [(None, 2), (None, 2)], 4.0),
        # A launcher's count stands.
        ([COUNTED], {}, [(1, 4)], 2.0),
        # Ranks pinned to CPUs of their own have those, within a quota.
        (PINNED, {"cgroup": QUOTA}, [(0, 2), (1, 2)], 3.0),
        # Ranks on the same CPUs share them.
        (SHARING, {}, [(r, 4) for r in range(4)], 2.0),
        ([{}] * 4, {}, [(None, None)] * 4, 2.0),
    ],
)
def test_ranks_of_a_host_and_the_cpus_of_each(tmp_path, processes, system, ranks, cpus):
    assert job(tmp_path, *processes, **system) == (ranks, cpus)


def test_it_says_what_the_batches_say(tmp_path):
    """Of each epoch, the first batch is left out."""
    made = RunBuilder(tmp_path).process(rank=0, world_size=8)
    rows = [*loop(3, 4, 7), *loop(3, 5, 5, epoch=1)]
    for row, wait in zip(rows, (90, 1, 2, 80, 3, 6), strict=True):
        row["wait_ns"] = wait * MS
    made.loader(rows, epochs=[epoch_row(rows)], name="train", config={"num_workers": 2})
    (found,) = map(summary_of, open_run(made.path.parent).processes[0].loaders)
    told = (found.name, found.batches, found.steady, found.facts["num_workers"])
    assert told == ("train", 6, 4, 2)
    wait = found.columns["wait_ns"]
    assert (wait.mean, wait.median) == (3 * MS, 2.5 * MS)
    assert wait.error == pytest.approx(np.std([1, 2, 3, 6], ddof=1) / 2 * MS)
    assert "fetch_ns" not in found.columns


@pytest.fixture
def large(tmp_path):
    """LARGE ranks on two hosts; rank 5 is slow."""
    run = RunBuilder(tmp_path)
    for number in range(LARGE):
        wait_ms, fetch_ms = (150, 150) if number == 5 else (10 + number / 100, 10)
        facts = {"world_size": LARGE, "host": f"node{number // 8}"}
        rank(run, number, step_ms=160, process=facts, wait_ms=wait_ms, fetch_ms=fetch_ms)
    for host in range(2):
        (run.system(host=f"node{host}")).rename(run.path / f"system-node{host}-0")
    return run.path


def test_of_a_large_job_few_ranks_are_kept_and_all_are_told(large):
    job = open_job(large)
    assert [each.rank for each in job.processes if each.loaders] == [5]
    assert len(job.processes) == LARGE and [each.host for each in job.systems] == ["node0"]
    few, whole = build_report(job).loaders, build_report(open_run(large)).loaders
    assert few == whole
    ranks = few[0].ranks
    assert (few[0].rank, ranks.slowest.rank, ranks.hosts, len(ranks.each)) == (5, 5, 2, LARGE)


IDS = ("20250131-091500-aaaaaa", "20250131-091502-bbbbbb")


@pytest.fixture
def nodes(tmp_path):
    """Two nodes of two ranks each, whose process ids are the same; rank 3 is slow."""
    made = []
    for node, id_ in enumerate(IDS):
        run = RunBuilder(tmp_path / f"node{node}", id_, created_unix_ns=10**18 + node)
        for local in range(2):
            number = 2 * node + local
            ms, facts = 50 if number == 3 else 5, {"host": f"node{node}"}
            rank(run, number, pid=4000 + local, wait_ms=ms, step_ms=60, fetch_ms=ms, process=facts)
        run.system(host=f"node{node}")
        made.append(run.path)
    return made


def test_their_ranks_are_one_job(nodes, tmp_path, capsys):
    os.mkfifo(nodes[0] / "system-elsewhere-0" / "keeper")  # a sampler leaves its socket there
    before = set(tmp_path.rglob("*"))
    assert main(["merge", str(nodes[1]), str(nodes[0]), "-o", str(tmp_path / "job")]) == 0
    assert "job" in capsys.readouterr().out
    run = open_run(tmp_path / "job")
    found = [(each.rank, each.host, each.pid) for each in run.processes]
    assert found == [(2 * node + at, f"node{node}", 4000 + at) for node in (0, 1) for at in (0, 1)]
    assert len(run.systems) == 2 and not run.notes
    (section,) = build_report(run, advice=False).loaders
    assert (section.ranks.slowest.rank, section.ranks.hosts, section.pid) == (3, 2, 4001)
    made = {tmp_path / "job", *(tmp_path / "job").rglob("*")}
    assert set(tmp_path.rglob("*")) - made == before


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["{0}", "{0}"], "named twice"),
        (["{0}", "{0}x"], "no directory"),
        (["{0}", "{root}"], "no run.json"),
    ],
)
def test_what_cannot_be_merged_is_one_sentence_and_nothing_is_written_over(
    nodes, tmp_path, names, said
):
    given = [name.format(str(nodes[0]), root=tmp_path) for name in names]
    with pytest.raises(LoaderscopeError, match=said):
        merge_runs(given, tmp_path / "job")
    assert not (tmp_path / "job").exists()
    with pytest.raises(LoaderscopeError, match="already there"):
        merge_runs([str(nodes[0])], nodes[1])
    assert open_run(nodes[1]).processes
