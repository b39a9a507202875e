"""A loader in totals, and a large job of which few ranks are kept whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from builders import MS, RunBuilder, epoch_row, loop
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.assemble.job import open_job
from loaderscope.profiler.store.run.loader_summary import summary_of
from loaderscope.profiler.store.run.run_reader import LARGE, open_run
from rank_cases import rank


def test_it_says_what_the_batches_say(tmp_path: Path) -> None:
    """Of each epoch, the first batch is left out."""
    made = RunBuilder(tmp_path).process(rank=0, world_size=8)
    rows = [*loop(3, 4, 7), *loop(3, 5, 5, epoch=1)]
    for row, wait in zip(rows, (90, 1, 2, 80, 3, 6), strict=True):
        row["wait_ns"] = wait * MS
    made.loader(rows, epochs=[epoch_row(rows)], name="train", config={"num_workers": 2})
    (found,) = map(summary_of, open_run(made.path.parent).processes[0].loaders)
    assert (found.name, found.batches, found.steady, found.facts["num_workers"]) == (
        "train",
        6,
        4,
        2,
    )
    wait = found.columns["wait_ns"]
    assert (wait.mean, wait.median) == (3 * MS, 2.5 * MS)
    assert wait.error == pytest.approx(np.std([1, 2, 3, 6], ddof=1) / 2 * MS)
    assert "fetch_ns" not in found.columns


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """LARGE ranks on two hosts; rank 5 is slow."""
    run = RunBuilder(tmp_path)
    for number in range(LARGE):
        slow = number == 5
        times = {"wait_ms": 150 if slow else 10 + number / 100, "fetch_ms": 150 if slow else 10}
        facts = {"world_size": LARGE, "host": f"node{number // 8}"}
        rank(run, number, step_ms=160, process=facts, **times)
    for host in range(2):
        (run.system(host=f"node{host}")).rename(run.path / f"system-node{host}-0")
    return run.path


def test_of_a_large_job_few_ranks_are_kept_and_all_are_told(large: Path) -> None:
    job = open_job(large)
    assert [each.rank for each in job.processes if each.loaders] == [5]
    assert len(job.processes) == LARGE and [each.host for each in job.systems] == ["node0"]
    few, whole = build_report(job).loaders, build_report(open_run(large)).loaders
    assert few == whole
    ranks = few[0].ranks
    assert ranks is not None and ranks.slowest is not None
    assert (few[0].rank, ranks.slowest.rank, ranks.hosts, len(ranks.each)) == (5, 5, 2, LARGE)
