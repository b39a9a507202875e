"""What a rank leaves in totals says the same as its lanes, and a large job is read by that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builders import MS, RunBuilder, epoch_row, loop
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.assemble.job import open_job
from loaderscope.profiler.base.schema import BATCH
from loaderscope.profiler.record.session import session
from loaderscope.profiler.record.session.session import Session
from loaderscope.profiler.store.run.loader_summary import SUMMARY, read_summaries, summary_of
from loaderscope.profiler.store.run.run_reader import LARGE, open_run
from loaderscope.profiler.store.summary import LEAST_RANKS, write_summary
from rank_cases import rank


@pytest.fixture
def process(tmp_path: Path) -> Path:
    """Two loaders, one of them with batches of which only totals are left."""
    made = RunBuilder(tmp_path).process(rank=0, world_size=8)
    rows = [
        *loop(900, 3, 7, fetch_ns=20 * MS),
        *loop(400, 5, 5, epoch=1, fetch_ns=lambda n, t, w: n * MS),
    ]
    made.loader(
        rows, epochs=[epoch_row(rows)], max_bytes=260_000, name="train", config={"num_workers": 2}
    )
    made.loader(loop(30, 1, 9), loop(30, 2, 9), name="validation", config={"phase": "validation"})
    write_summary(made.path)
    return made.path


def test_it_says_what_the_lanes_say(process: Path) -> None:
    loaders = open_run(process.parent).processes[0].loaders
    assert loaders[0].folded.records
    assert read_summaries(process) == tuple(map(summary_of, loaders))


@pytest.mark.parametrize(
    "damage",
    [
        lambda data, first, waits: data.update(format=7),
        lambda data, first, waits: data.update(loaders={}),
        lambda data, first, waits: data["loaders"].append(None),
        lambda data, first, waits: first.update(steady=-1),
        lambda data, first, waits: first.update(batches=True),
        lambda data, first, waits: first["columns"].update(wait_ns=[1, 2]),
        *(
            lambda data, first, waits, at=at, value=value: waits.__setitem__(at, value)
            for at, value in ((0, 0), (1, -5), (4, [[1]]), (4, [[5000, 1]]))
        ),
    ],
)
def test_one_that_is_damaged_is_not_read(process: Path, damage: Any) -> None:
    data = json.loads((process / SUMMARY).read_text())
    damage(data, data["loaders"][0], data["loaders"][0]["columns"]["wait_ns"])
    (process / SUMMARY).write_text(json.dumps(data))
    assert read_summaries(process) is None
    assert open_run(process.parent).processes[0].loaders


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """LARGE ranks on two hosts; rank 5 is slow, rank 9 was killed before it could sum itself up."""
    run = RunBuilder(tmp_path)
    for number in range(LARGE):
        slow = number == 5
        times = {"wait_ms": 150 if slow else 10 + number / 100, "fetch_ms": 150 if slow else 10}
        facts = {"world_size": LARGE, "host": f"node{number // 8}"}
        rank(run, number, step_ms=160, process=facts, **times)
        if number != 9:
            write_summary(run.path / f"p{4000 + number}-0")
    for host in range(2):
        (run.system(host=f"node{host}")).rename(run.path / f"system-node{host}-0")
    return run.path


def test_of_a_large_job_one_rank_is_read_and_all_are_told(large: Path) -> None:
    job = open_job(large)
    assert [each.rank for each in job.processes if each.loaders] == [5]
    assert len(job.processes) == LARGE and [each.host for each in job.systems] == ["node0"]
    few, whole = build_report(job).loaders, build_report(open_run(large)).loaders
    assert few == whole
    ranks = few[0].ranks
    assert ranks is not None and ranks.slowest is not None
    assert (few[0].rank, ranks.slowest.rank, ranks.hosts, len(ranks.each)) == (5, 5, 2, LARGE)
    (large / "p4003-0" / SUMMARY).write_text("{")  # costs nothing but time
    assert build_report(open_job(large)).loaders == few


def session_of(world: int | None, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    for name, value in {"RANK": 0, "WORLD_SIZE": world}.items() if world else ():
        monkeypatch.setenv(name, str(value))
    (folder / "run").mkdir()
    return Session(folder / "run")


@pytest.mark.parametrize(
    ("world", "left"), [(LEAST_RANKS, True), (LEAST_RANKS - 1, False), (None, False)]
)
def test_a_rank_of_many_leaves_one_when_it_ends(tmp_path, monkeypatch, world, left):
    own = session_of(world, tmp_path, monkeypatch)
    own.write("loader0.json", {"name": "Rows", "config": {"dataset": "train.Rows"}})
    lane = own.lane("batches0x0", BATCH)
    for row in loop(12, 3, 7):
        lane.append(*(row.get(f.name, -1) for f in BATCH.fields[1:]))
    lane.close()
    own.finish()
    assert (own.directory / SUMMARY).exists() == left
    if left:
        (summary,) = read_summaries(own.directory) or ()
        assert (summary.name, summary.batches, summary.steady) == ("Rows", 12, 11)
        assert summary.mean("wait_ns") == 3 * MS


def test_a_summary_that_fails_ends_nothing_else(tmp_path, monkeypatch):
    def failing(directory: Path) -> None:
        raise MemoryError

    monkeypatch.setattr(session, "write_summary", failing)
    own = session_of(64, tmp_path, monkeypatch)
    own.finish()
    assert json.loads((own.directory / "process.json").read_text())["ended_clock_ns"]
