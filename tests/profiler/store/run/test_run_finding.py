"""Finding a run by name, and listing them."""

import time
from pathlib import Path

import pytest

from builders import RunBuilder, loop
from loaderscope.profiler.base.errors import RunNotFound
from loaderscope.profiler.store.run.run_finder import find_run, run_ids
from loaderscope.profiler.store.run.run_list import list_runs
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.profiler.store.rundir import create_run, runs_directory

IDS = ["20250131-091500-aaaaaa", "20250131-091501-bbbbbb", "20250201-000000-cccccc"]


@pytest.fixture
def runs(tmp_path):
    for id_ in IDS:
        RunBuilder(tmp_path, id_)
    (tmp_path / "20250301-notes").mkdir()
    (tmp_path / "20250301-000000-file00").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("name", "expected"),
    [("latest", IDS[2]), (IDS[0], IDS[0]), ("20250131-091501", IDS[1]), ("202502", IDS[2])],
)
def test_names(runs, name, expected):
    assert find_run(name, runs) == runs / expected
    assert find_run(str(runs / expected), Path("/nowhere")) == runs / expected


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("2025", "is the beginning of 3 runs .*: type more of the id"),
        ("nope", "there is no run nope in .*`loaderscope list`"),
        ("a\0b", "is not the name of a run"),
        ("x" * 10_000, "cannot be looked up|there is no run"),
        ("\x1b[31m", "there is no run"),
    ],
)
def test_names_that_fit_no_run(runs, name, sentence):
    with pytest.raises(RunNotFound, match=sentence) as caught:
        find_run(name, runs)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("stands", [False, True])
def test_runs_of_one_second_are_told_apart_by_when_they_began(tmp_path, monkeypatch, stands):
    if stands:  # a clock that does, as of freezegun
        monkeypatch.setattr(time, "time_ns", lambda: 1_738_314_900_000_001_999)
    made = [create_run(tmp_path, []).name for _ in range(20)]
    assert run_ids(tmp_path) == made


def test_list_is_newest_first_and_shows_what_cannot_be_read(runs):
    process = RunBuilder(runs, "20250401-000000-dddddd").process()
    process.loader(loop(3))
    (runs / IDS[1] / "run.json").write_text("torn")
    entries = list_runs(runs)
    assert [entry.id for entry in entries] == ["20250401-000000-dddddd", *IDS[::-1]]
    newest, _, torn, _ = entries
    assert (newest.state, newest.problem, newest.processes) == ("finished", None, 1)
    assert newest.loaders == 1 and newest.size_bytes > 4 << 10
    assert torn.state == "unreadable" and "torn or corrupt" in torn.problem
    assert len(list_runs(runs, 2)) == 2


def test_a_run_that_ctrl_c_ended_is_listed_as_its_report_says(runs):
    ended = ({"ended_by": "KeyboardInterrupt"}, {})
    for number, facts in enumerate(ended):
        RunBuilder(runs, f"2025040{number}-000000-dddddd").process(**facts).loader(loop(3))
    torn = RunBuilder(runs, "20250409-000000-dddddd").process(**ended[0])
    (torn.path / "process.json").write_text("torn")
    listed = {entry.id: entry.state for entry in list_runs(runs)}
    assert listed["20250400-000000-dddddd"] == "interrupted"
    assert listed["20250401-000000-dddddd"] == "finished"
    assert {each: open_run(runs / each).outcome for each in listed} == listed


def test_where_runs_live():
    assert runs_directory({"LOADERSCOPE_DIR": "/data/runs"}) == Path("/data/runs")
    assert runs_directory({"LOADERSCOPE_DIR": "~/r"}) == Path.home() / "r"
    assert runs_directory({"LOADERSCOPE_DIR": ""}).name == "runs"
