"""Runs of a job's nodes that lie apart are one after merging."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from builders import RunBuilder
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.cli import main
from loaderscope.profiler.base.errors import LoaderscopeError
from loaderscope.profiler.store.run.merge_runs import merge_runs
from loaderscope.profiler.store.run.run_reader import open_run
from rank_cases import rank

IDS = ("20250131-091500-aaaaaa", "20250131-091502-bbbbbb")


@pytest.fixture
def nodes(tmp_path: Path) -> list[Path]:
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
    assert section.ranks is not None and section.ranks.slowest is not None
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
