"""Many runs as one table: a row a loader and run, in three formats that say the same."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from builders import RunBuilder, epoch_row, loop
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.cli import main
from loaderscope.profiler.store.run.run_list import list_runs
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.reports.export.fleet import FleetRow, fleet_rows
from loaderscope.reports.export.tables import render_table
from rank_cases import job, rank

IDS = [f"2025013{day}-091500-abc123" for day in range(4)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A job with a slow rank, two loaders on a device, a run without a loader, and one that is
    torn."""
    job(RunBuilder(tmp_path, IDS[0]), slow=2)
    one = RunBuilder(tmp_path, IDS[1]).process(device="NVIDIA H200")
    for name, wait_ms in (("train", 30.0), ("validation", 0.0)):
        rows = loop(200, wait_ms, 60 - wait_ms)
        config = {"phase": "training", "place": "train.py:4"}
        one.loader(rows, epochs=[epoch_row(rows)], name=name, config=config)
    RunBuilder(tmp_path, IDS[2]).process()
    torn = RunBuilder(tmp_path, IDS[3])
    (torn.path / "run.json").write_text("{")
    return tmp_path


def rows_of(folder: Path) -> list[FleetRow]:
    found: list[FleetRow] = []
    for entry in list_runs(folder)[::-1]:
        report = build_report(open_run(entry.path)) if entry.problem is None else entry.problem
        found += fleet_rows(entry, report)
    return found


def test_a_row_a_loader_and_run(folder: Path) -> None:
    rows = rows_of(folder)
    named = [(row.run, row.loader) for row in rows]
    assert named[:3] == [(IDS[0], "Rows"), (IDS[1], "train"), (IDS[1], "validation")]
    assert named[3:] == [(IDS[2], None), (IDS[3], None)]
    assert rows[4].problem is not None and "torn" in rows[4].problem and rows[4].verdict is None


def test_what_a_job_lost_is_lost_in_every_rank(folder: Path) -> None:
    """40 steps of 160 ms, of which the slow rank waits 150: so do the three that wait for it."""
    row = rows_of(folder)[0]
    assert (row.ranks, row.hosts, row.slowest_rank, row.slowest_cause) == (4, 1, 2, "fetch")
    assert row.lost_share == pytest.approx(15 / 16)
    assert row.lost_loop_hours == pytest.approx(4 * 40 * 0.150 / 3600)
    assert row.lost_gpu_hours is None
    assert row.first_rule is not None and row.predicted_low is not None and row.predicted_low > 1.03


def test_ranks_that_do_not_step_together_lose_what_each_waits(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path, IDS[0])
    rank(run, 0, wait_ms=10, step_ms=20, fetch_ms=10)
    rank(run, 1, wait_ms=60, step_ms=70, fetch_ms=60)
    assert rows_of(tmp_path)[0].lost_loop_hours == pytest.approx(40 * 0.070 / 3600)


def test_device_hours(folder: Path) -> None:
    train, validation = rows_of(folder)[1:3]
    assert (train.verdict, train.place) == ("input-bound", "train.py:4")
    assert train.wait_share == pytest.approx(0.5)
    assert train.lost_gpu_hours == train.lost_loop_hours == pytest.approx(200 * 0.030 / 3600)
    assert (validation.verdict, validation.lost_gpu_hours) == ("compute-bound", 0)


def test_every_format_says_the_same(folder, tmp_path, capsys):
    pq = pytest.importorskip("pyarrow.parquet")
    target = tmp_path / "fleet.parquet"
    assert main(["list", "--runs", str(folder), "--format", "parquet", "-o", str(target)]) == 0
    assert main(["list", "--runs", str(folder), "--format", "json"]) == 0
    told: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    assert pq.read_table(target).to_pylist() == told and len(told) == 5
    assert main(["list", "--runs", str(folder), "--format", "csv", "-n", "2"]) == 0
    newest = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["run"] for row in newest] == [IDS[3], IDS[2]]
    assert all(set(row) == set(told[0]) for row in newest)
    assert main(["list", "--runs", str(folder), "--format", "parquet"]) == 2
    assert "-o fleet.parquet" in capsys.readouterr().err
    assert json.loads(render_table("json", FleetRow, [])) == []
    assert str(render_table("csv", FleetRow, [])).startswith("run,path,state,")
