"""What is no run, or no terminal, for every verb: one sentence that says what it is, exit code 2."""

import json
import os
import shutil
from pathlib import Path

import pytest

from started import LOADERSCOPE, here, ran

VERBS = (
    "report {}",
    *(f"report {{}} --format {each}" for each in ("json", "md", "html", "perfetto")),
    "report {} --format parquet -o tables",
    "top {}",
    "stacks {}",
    *(f"compare {{}} {{}} --format {each}" for each in ("text", "html", "json")),
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


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "file").write_text("{}")
    for name in ("empty", "newer", "torn", "locked", "described", "folder/run.json"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "newer" / "run.json").write_text(json.dumps({"format": 2}))
    (tmp_path / "torn" / "run.json").write_text('{"format": 1, "id"')
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_no_run(verb, places, fails):
    for name, begins in NO_RUNS.items():
        assert fails(*(part.format(name) for part in verb.split())).startswith(begins)


def test_probing_storage_of_what_is_no_run(places, fails):
    """A folder is data there, not a run; and no name at all is the folder one is in."""
    names = {name: says for name, says in NO_RUNS.items() if name}
    names |= {"file": "file is a file", "./file": "./file is a file", "empty": "there are no files"}
    for name, says in names.items():
        assert fails("probe-storage", name).startswith(says)


@pytest.mark.parametrize(
    "verb", ["list", "report", "top", "stacks", "compare latest", "probe-storage"]
)
def test_a_folder_of_runs_that_is_none(verb, places, monkeypatch, fails):
    monkeypatch.setenv("LOADERSCOPE_DIR", str(places / "file"))
    says = f"the folder of runs {places / 'file'} cannot be read: Not a directory"
    assert fails(*verb.split()).startswith(says)


def unprivileged() -> list[str] | None:
    """What goes before a command so that permissions bind it; None where that cannot be had."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    without = "-dac_override,-dac_read_search"
    command = [setpriv or "", f"--bounding-set={without}", f"--inh-caps={without}"]
    return command if setpriv and not ran([*command, "true"]).returncode else None


def test_folders_that_cannot_be_read(places: Path) -> None:
    command = unprivileged()
    if command is None:
        pytest.skip("permissions do not bind root, and setpriv cannot change that here")
    for name in ("locked", "described"):
        (places / name / "run.json").write_text('{"format": 1}')
    (places / "described" / "run.json").chmod(0)
    (places / "locked").chmod(0)
    asked = {f"report {name}": f"{name}/run.json" for name in ("locked", "described")}
    asked["list"] = f"the folder of runs {places / 'locked'}"
    try:
        for each, what in asked.items():
            env = here(**({"LOADERSCOPE_DIR": "locked"} if each == "list" else {}))
            ended = ran([*command, *LOADERSCOPE, *each.split()], env=env)
            says = f"loaderscope: {what} cannot be read: Permission denied\n"
            assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", says)
    finally:
        (places / "locked").chmod(0o700)


def test_no_terminal(run, fails, shows, runs_dir):
    assert "needs a terminal" in fails("top")
    assert "needs a terminal" in fails("run", "--live", "train.py")
    assert not list(runs_dir.glob("2026*"))
    assert "--live" in shows("run", "--help")
