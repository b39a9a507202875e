"""What is no run, or no terminal, for every verb: one sentence that says what it is, exit code 2."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from builders import RunBuilder, loop
from loaderscope.cli import main

VERBS = (
    ["report", "{}"],
    ["report", "{}", "--format", "json"],
    ["report", "{}", "--format", "md"],
    ["report", "{}", "--format", "html"],
    ["report", "{}", "--format", "perfetto"],
    ["report", "{}", "--format", "speedscope"],
    ["report", "{}", "--format", "parquet", "-o", "tables"],
    ["report", "{}", "--probe", "train:make_loader"],
    ["top", "{}"],
    ["stacks", "{}"],
    ["stacks", "{}", "-o", "s.json"],
    ["compare", "{}", "{}"],
    ["compare", "{}", "{}", "--format", "html"],
    ["compare", "{}", "{}", "--format", "json"],
)
NO_RUNS = {
    "nosuchrun": "there is no run nosuchrun in ",
    "20250131": "there is no run 20250131 in ",
    "./nosuch": "there is no directory ./nosuch",
    "file": "file is a file: a run is a folder",
    "./file": "./file is a file: a run is a folder",
    "empty": "empty is not a run directory: it has no run.json",
    "newer": "newer/run.json was written by a newer Loaderscope (format 2): upgrade to read it",
    "torn": "torn/run.json is torn or corrupt: it is not JSON",
    "folder": "folder/run.json is not a file",
    "": "'' is not the name of a run",
}
UNREADABLE = {
    "locked": "locked/run.json cannot be read: Permission denied",
    "described": "described/run.json cannot be read: Permission denied",
}


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "file").write_text("{}")
    for name in ("empty", "newer", "torn", "locked", "described", "folder/run.json"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "newer" / "run.json").write_text(json.dumps({"format": 2}))
    (tmp_path / "torn" / "run.json").write_text('{"format": 1, "id"')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def is_one_sentence(code: int, out: str, err: str, begins: str) -> None:
    assert code == 2
    assert out == ""
    assert err.startswith(f"loaderscope: {begins}")
    assert err.count("\n") == 1
    assert err.endswith("\n")


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_what_is_no_run(verb: list[str], places: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, begins in NO_RUNS.items():
        code = main([name if part == "{}" else part for part in verb])
        out, err = capsys.readouterr()
        is_one_sentence(code, out, err, begins)


def test_probing_storage_of_what_is_no_run(
    places: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder is data there, not a run; and no name at all is the folder one is in."""
    names = {name: says for name, says in NO_RUNS.items() if name}
    names |= {"file": "file is a file", "./file": "./file is a file", "empty": "there are no files"}
    for name, says in names.items():
        code = main(["probe-storage", name])
        out, err = capsys.readouterr()
        is_one_sentence(code, out, err, says)


@pytest.mark.parametrize(
    "verb", [["list"], ["report"], ["top"], ["stacks"], ["compare", "latest"], ["probe-storage"]]
)
def test_a_folder_of_runs_that_is_none(
    verb: list[str],
    places: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LOADERSCOPE_DIR", str(places / "file"))
    code = main(verb)
    out, err = capsys.readouterr()
    is_one_sentence(
        code, out, err, f"the folder of runs {places / 'file'} cannot be read: Not a directory"
    )


def unprivileged() -> list[str] | None:
    """What goes before a command so that permissions bind it; None where that cannot be had."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    without = "-dac_override,-dac_read_search"
    command = [setpriv or "", f"--bounding-set={without}", f"--inh-caps={without}"]
    works = (
        setpriv
        and subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    )
    return command if works else None


READ_ALL = """
import json, os, sys
from loaderscope.cli import main
for arguments in json.loads(sys.argv[1]):
    print(json.dumps(arguments), file=sys.stderr, flush=True)
    print(main(arguments), file=sys.stderr, flush=True)
os.environ["LOADERSCOPE_DIR"] = "locked"
for verb in ("list", "report", "top", "stacks"):
    print(verb, file=sys.stderr, flush=True)
    print(main([verb]), file=sys.stderr, flush=True)
"""


def test_folders_that_cannot_be_read(places: Path) -> None:
    command = unprivileged()
    if command is None:
        pytest.skip("permissions do not bind root, and setpriv cannot change that here")
    (places / "locked" / "run.json").write_text('{"format": 1}')
    (places / "described" / "run.json").write_text('{"format": 1}')
    (places / "described" / "run.json").chmod(0)
    (places / "locked").chmod(0)
    asked = [
        [name if part == "{}" else part for part in verb] for verb in VERBS for name in UNREADABLE
    ]
    try:
        result = subprocess.run(
            [*command, sys.executable, "-c", READ_ALL, json.dumps(asked)],
            capture_output=True,
            text=True,
            timeout=200,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            check=True,
        )
    finally:
        (places / "locked").chmod(0o700)
    assert result.stdout == ""
    expected = [
        line
        for arguments in asked
        for line in (json.dumps(arguments), f"loaderscope: {UNREADABLE[arguments[1]]}", "2")
    ]
    folder = (
        f"loaderscope: the folder of runs {places / 'locked'} cannot be read: Permission denied"
    )
    expected += [
        line for verb in ("list", "report", "top", "stacks") for line in (verb, folder, "2")
    ]
    assert result.stderr.splitlines() == expected


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("loaderscope: ")
    assert err.count("\n") == 1
    return err


def test_no_terminal(capsys: pytest.CaptureFixture[str], runs_dir: Path) -> None:
    RunBuilder(runs_dir).process().loader(loop(3))
    assert "needs a terminal" in said(capsys, "top")
    assert "needs a terminal" in said(capsys, "run", "--live", "train.py")
    assert not list(runs_dir.glob("2026*"))


def test_both_are_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "top" in capsys.readouterr().out
    assert main(["run", "--help"]) == 0
    assert "--live" in capsys.readouterr().out
