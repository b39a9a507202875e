"""`loaderscope fix` on a recorded run: the patch is shown, applies, is written."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.cli import main
from loaderscope.profiler.store.run.run_reader import open_run
from made_projects import PROJECTS, lay
from started import LOADERSCOPE, ran

ROWS = PROJECTS["rows_one_by_one"]
EXPECTED = (Path(__file__).parents[1] / "fixing/golden/rows_one_by_one.diff").read_text()
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project and its run, recorded once."""
    folder = tmp_path_factory.mktemp("fix")
    lay(folder / "project", ROWS.files)
    command = [*LOADERSCOPE, "run", "--runs", folder / "runs", "train.py"]
    for _ in range(3):  # a machine that others keep busy may leave no change certain
        done = ran(command, cwd=folder / "project")
        assert done.returncode == 0, done.stderr
        (made,) = (folder / "runs").iterdir()
        if build_report(open_run(made)).loaders[0].recommendations:
            return folder
        shutil.rmtree(made)
    raise AssertionError("the report recommends nothing")


@pytest.fixture
def project(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The project as it was recorded; the command is called in it."""
    folder = recorded / "project"
    monkeypatch.chdir(folder)
    yield folder
    shutil.rmtree(folder)
    lay(folder, ROWS.files)


@pytest.fixture
def run(recorded: Path, tmp_path: Path) -> Path:
    """A copy of the run, to be tampered with."""
    (found,) = (recorded / "runs").iterdir()
    shutil.copytree(found, tmp_path / found.name)
    return tmp_path / found.name


def fails(capsys: Capture, *args: str) -> str:
    assert main(["fix", *args]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1, captured
    return captured.err


def test_the_patch_is_shown_for_patch(project: Path, run: Path, capsys: Capture) -> None:
    assert main(["fix", str(run), "--no-check", "--root", "."]) == 0
    captured = capsys.readouterr()
    assert captured.out == EXPECTED
    assert "not tried" in captured.err and "(made at train.py:4)" in captured.err
    assert (project / "data.py").read_text() == ROWS.files["data.py"]
    ran(["patch", "-p1"], input=captured.out, check=True)
    assert "def __getitems__" in (project / "data.py").read_text()


def test_the_patch_is_written(project: Path, run: Path, capsys: Capture) -> None:
    inode = (project / "data.py").stat().st_ino
    assert main(["fix", str(run), "--no-check", "--root", str(project), "--write"]) == 0
    captured = capsys.readouterr()
    assert captured.out == EXPECTED and captured.err.endswith("written: data.py\n")
    assert "def __getitems__" in (project / "data.py").read_text()
    assert (project / "data.py").stat().st_ino != inode  # in one step
    assert sorted(path.name for path in project.glob("*.*")) == ["data.py", "train.py"]
    # What the run recorded is another source now.
    says = fails(capsys, str(run), "--no-check", "--root", ".")
    assert "data.py was changed since the run" in says


def test_a_patch_is_tried_before_it_is_shown(project: Path, run: Path, capsys: Capture) -> None:
    assert main(["fix", str(run), "--root", ".", "--yes", "--budget", "5"]) == 0
    captured = capsys.readouterr()
    assert captured.out == EXPECTED
    assert "tried: same batches (" in captured.err


def test_a_patch_that_does_not_hold_is_not_shown(project, run, capsys, monkeypatch):
    from loaderscope.experiment.result import Difference, TryResult
    from loaderscope.fixing import trial

    other = TryResult(False, 64, Difference(3, "values of [0]"))
    monkeypatch.setattr(trial, "try_change", lambda *_, **__: other)
    assert main(["fix", str(run), "--root", ".", "--yes", "--write"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and "different from batch 3 on: values of [0]" in captured.err
    assert "The patch is not shown" in captured.err
    assert (project / "data.py").read_text() == ROWS.files["data.py"]


def test_nothing_is_run_unasked_and_no_other_folder_touched(project, run, capsys, tmp_path):
    assert "say --yes to run it" in fails(capsys, str(run), "--root", ".")
    says = fails(capsys, str(run), "--no-check", "--write", "--root", str(tmp_path))
    assert "no patch for" in says


@pytest.mark.parametrize("number", ["9", "0", "x"])
def test_there_is_no_such_advice(number: str, project: Path, run: Path, capsys: Capture) -> None:
    fails(capsys, str(run), "--advice", number, "--no-check")


def test_a_run_cannot_name_another_file(project, run, capsys, tmp_path):
    """Its hashes and lines name a file outside of the project: directly, by `..`, through a link."""
    secret = tmp_path / "secret"
    hashes = lay(secret, ROWS.files)
    os.symlink(secret, project / "linked")
    digest = hashes[str(secret / "data.py")]
    (sources,), (loader,) = run.glob("p*/sources.json"), run.glob("p*/loader0.json")
    facts, text = json.loads(sources.read_text()), loader.read_text()
    for path in (
        secret / "data.py",
        project / f"../{tmp_path}/secret/data.py",
        project / "linked/data.py",
    ):
        sources.write_text(json.dumps({**facts, "files": {str(path): digest}}))
        loader.write_text(text.replace(str(project / "data.py"), str(path)))
        main(["fix", str(run), "--no-check", "--write", "--root", str(project)])
        capsys.readouterr()
        assert (secret / "data.py").read_text() == ROWS.files["data.py"], path
    (project / "linked").unlink()
