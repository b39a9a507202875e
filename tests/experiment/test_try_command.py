"""`loaderscope try` with scripts: what it finds, leaves behind, and says where it cannot."""

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from loaderscope.cli import main
from loaderscope.cli.try_ import try_verb
from made_projects import lay
from started import LOADERSCOPE, PATIENCE_S, Ended, here, ran, until

TRAIN = """\
import os, sys, time
from pathlib import Path
import torch
from torch.utils.data import DataLoader
from lib.data import Rows

if __name__ == "__main__":
    assert os.environ["LOADERSCOPE_TRIAL"] == "1" and os.environ["WANDB_MODE"] == "disabled"
    assert sys.argv[1:] == ["--epochs", "500"], sys.argv
    Path("written.txt").write_text("x")
    Path("data.txt").write_text("x")
    try:
        for _ in range(500):
            for batch in DataLoader(Rows(), batch_size=4, shuffle=True, num_workers=1):
                pass
    finally:
        Path(os.environ["AT_END"]).write_text("a trial does not end like this")
"""

DATA = """\
import time
import torch
from torch.utils.data import Dataset


class Rows(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, index):
        time.sleep(0.012)
        return torch.rand(3) + index
"""

FASTER = """\
--- a/src/lib/data.py
+++ b/src/lib/data.py
@@ -10,3 +10,3 @@
     def __getitem__(self, index):
-        time.sleep(0.012)
+        time.sleep(0.001)
         return torch.rand(3) + index
"""

SHORT = """\
import sys
from torch.utils.data import DataLoader

if __name__ == "__main__":
    for value in DataLoader(list(range(40)), batch_size=4):
        pass
    print("done")
"""


@pytest.fixture
def project() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="try-") as folder:  # sockets need short paths
        root = Path(folder).resolve() / "project"
        lay(root, {"src/lib/__init__.py": "", "src/lib/data.py": DATA, "train.py": TRAIN})
        lay(root, {"data.txt": "original", "change.diff": FASTER})
        yield root


def environment(root: Path) -> dict[str, str]:
    """Temporary folders go where the test can look, and the project is imported from its folder."""
    (root.parent / "tmp").mkdir(exist_ok=True)
    found = here(TMPDIR=str(root.parent / "tmp"), AT_END=str(root.parent / "at_end"))
    return {**found, "PYTHONPATH": os.pathsep.join([str(root / "src"), found["PYTHONPATH"]])}


def tried(root: Path, arguments: str, given: str) -> Ended:
    line = [*LOADERSCOPE, "try", *arguments.split()]
    done = ran(line, cwd=root, env=environment(root), input=given)
    assert not list((root.parent / "tmp").glob("loaderscope-try-*"))
    assert "Traceback" not in done.stderr
    return done


def test_same_batches_and_faster(project: Path) -> None:
    options = "train.py --patch - --yes --format json --budget 25 -- --epochs 500"
    done = tried(project, options, FASTER)
    found = json.loads(done.stdout)
    factor = found.pop("factor")
    first = {"same_batches": True, "compared": 64, "first_difference": None, "error": None}
    assert [*found.items()][:4] == [*first.items()] and done.returncode == 0, done.stderr
    assert 1.0 < factor["low"] <= factor["mid"] <= factor["high"] and factor["mid"] > 1.5
    assert any("sets no seed" in note for note in found["notes"])
    assert (project / "data.txt").read_text() == "original"
    assert {path.name for path in project.iterdir()} == {
        "change.diff",
        "data.txt",
        "src",
        "train.py",
    }
    assert not (project.parent / "at_end").exists()  # it ended as by a power cut


def test_other_values_are_named_and_so_is_what_is_random_by_itself(project: Path) -> None:
    data, quick = project / "src/lib/data.py", DATA.replace("0.012", "0.0")
    data.write_text(quick)
    patch = FASTER.replace("0.012", "0.0").replace("time.sleep(0.001)", "index = index + 1")
    options = "--patch - --yes --budget 2 train.py --epochs 500"
    done = tried(project, options, patch)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("different from batch 0 on: other values in the batch (Tensor")
    assert "from run to run" not in done.stdout
    data.write_text(quick.replace("torch.rand(3)", "time.time_ns()"))
    patch = patch.replace("torch.rand(3)", "time.time_ns()")
    done = tried(project, options, patch)
    assert done.returncode == 1 and "they differ from run to run, too" in done.stdout


FAILS = {
    "no patch": ("--patch gone.diff x.py", "the patch gone.diff cannot be read"),
    "no change": ("--yes x.py", "which change?"),
    "two changes": ("--patch - --against HEAD x.py", "which change?"),
    "one folder": ("--a . x.py", "say both --a DIR and --b DIR"),
    "no script": ("--patch -", "which script?"),
    "no such script": ("--patch - -y gone.py", "there is no script 'gone.py' here"),
    "not asked": ("--patch - x.py", "say --yes to run it"),
    "elsewhere": ("--patch - -y ../y.py", "call it from its project's folder"),
}


@pytest.mark.parametrize(("arguments", "said"), FAILS.values(), ids=FAILS)
def test_what_cannot_be_tried_is_one_sentence(arguments, said, project, monkeypatch, capsys):
    lay(project, {"x.py": SHORT, "../y.py": SHORT})
    monkeypatch.chdir(project)
    for form in ("", "--format json "):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FASTER.encode())))
        assert main(["try", *f"{form}{arguments}".split()]) == 2
        out, err = capsys.readouterr()
        assert said in (json.loads(out)["error"] if out else err) and err.count("\n") <= 1


FAILED = "the script {} ended with exit code 1: ZeroDivisionError: division by zero"
EMPTY = SHORT.replace("DataLoader(list(range(40)), batch_size=4)", "()")


@pytest.mark.parametrize(
    ("script", "old", "new", "said"),
    [
        (SHORT, "pass", "4 / 0", FAILED.format("with the change")),
        (SHORT.replace("pass", "4 / 0"), "4 / 0", "pass", FAILED.format("as it is")),
        (EMPTY, "pass", "value", "the script as it is iterates over no DataLoader"),
    ],
)
def test_a_script_that_fails_or_has_no_loader(project, script, old, new, said):
    (project / "x.py").write_text(script)
    lines = f"-        {old}\n+        {new}\n"
    change = f'--- x.py\n+++ x.py\n@@ -6,2 +6,2 @@\n{lines}     print("done")\n'
    done = tried(project, "x.py --patch - -y", change)
    assert (done.returncode, done.stderr) == (2, f"loaderscope: {said}\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_nothing_is_left_of_a_trial_that_is_ended(number, code, project):
    arguments = ("--patch", "change.diff", "-y", "train.py", "--epochs", "500")
    how: Any = {"cwd": project, "env": environment(project), "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([*LOADERSCOPE, "try", *arguments], **how)
    tmp = project.parent / "tmp"
    until(lambda: len(sides(tmp)) >= 3, "both, and a worker")
    process.send_signal(number)
    assert process.wait(timeout=PATIENCE_S) == code
    until(lambda: not any(tmp.glob("loaderscope-try-*")) and not sides(tmp), "nothing left")


def sides(tmp: Path) -> list[int]:
    """The processes that run in copies."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cwd().startswith(str(tmp)) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


@pytest.mark.parametrize(
    ("arguments", "script"),
    [
        ("train.py --patch c", "train.py"),
        ("train.py --patch=c --epochs 3", "train.py --epochs 3"),
        ("train.py --patch c -- --patch 3", "train.py --patch 3"),
        ("--patch c train.py --budget 3", "train.py --budget 3"),
        ("-y train.py --patch c a -b", "train.py a -b"),
        ("-m pkg.train --patch c --lr 1", "-m pkg.train --lr 1"),
        ("--patch c -m pkg -- x", "-m pkg x"),
        ("--patch c -- train.py -y", "train.py -y"),
    ],
)
def test_own_options_stand_before_the_script_or_between_it_and_its_own(arguments, script):
    context: Any = try_verb.make_context("try", arguments.split())
    assert " ".join(context.params["command"]) == script
    assert context.params["patch"] == "c" and context.params["budget"] == 60.0
