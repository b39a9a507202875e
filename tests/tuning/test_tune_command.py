"""`loaderscope tune` and tuning in the code: the program as it is, its exit code, what it is told."""

import os
import re
from pathlib import Path

import pytest

from loaderscope.cli import main
from loaderscope.profiler.store.run.run_reader import open_run
from started import LOADERSCOPE, Ended, python, ran

SHORT = """
import os, sys
import loaderscope
from torch.utils.data import DataLoader

loader = loaderscope.tune(loaderscope.tune(DataLoader(list(range(40)), batch_size=4)))
unused = loaderscope.tune(DataLoader([1, 2]))
print(sum(int(batch.sum()) for batch in loader))
if hasattr(os, "fork"):
    child = os.fork()
    if not child:
        sys.exit(3)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
sys.exit(7)
"""

SLEEPS = """
import sys, time
import torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 10**6

    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.full((4,), float(index))

if __name__ == "__main__":
    how, workers, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    loader = DataLoader(Slow(), batch_size=16, num_workers=workers)
    if how == "tune":
        import loaderscope

        loader = loaderscope.tune(loader)
    began = None
    for number, batch in enumerate(loader):
        if number == 16:
            began = time.monotonic()
        if began is not None and time.monotonic() - began > seconds and number % 4 == 0:
            break
    print((number - 16) / (time.monotonic() - began))
"""


def run(folder: Path, *command: str) -> Ended:
    return python(*command, cwd=folder, env={**os.environ, "PYTHONWARNINGS": "ignore"})


def test_a_line_for_each_loader_that_was_iterated_over(tmp_path: Path) -> None:
    """Once, by the process that tunes, and nothing else is other than without."""
    (tmp_path / "train.py").write_text(SHORT)
    result = run(tmp_path, "train.py")
    assert (result.returncode, result.stdout) == (7, "780\n3\n")
    assert result.stderr == "loaderscope: tuned list: the loop ended before anything was decided\n"


@pytest.mark.skipif(not hasattr(os, "dup2"), reason="no descriptors to close")
def test_a_program_without_standard_error_ends_as_without(tmp_path: Path) -> None:
    closed = SHORT.replace("sys.exit(7)", "sys.stderr = None\nsys.exit(7)")
    (tmp_path / "train.py").write_text(closed)
    result = run(tmp_path, "train.py")
    assert (result.returncode, result.stderr) == (7, "")


@pytest.mark.quiet
def test_a_data_set_that_sleeps_is_measured_as_it_is(tmp_path: Path, runs_dir: Path) -> None:
    """What is proven of 0 → 4 workers, which deliver in bursts, is what runs of each show."""
    (tmp_path / "train.py").write_text(SLEEPS)
    bare = ("train.py", "bare")
    none, four = (float(run(tmp_path, *bare, workers, "5").stdout) for workers in ("0", "4"))
    told = run(tmp_path, "train.py", "tune", "0", "30").stderr
    (recorded,) = runs_dir.iterdir()
    tuning = open_run(recorded).loaders[0].tuning
    assert tuning is not None
    trials = [each for each in tuning.trials if each.measured]
    measured = {int(str(each.settings["num_workers"])): each.measured for each in trials}
    low, _, high = measured[4]
    assert low / 1.2 < four / none < high * 1.2
    assert all(found[1] < 1.2 * workers for workers, found in measured.items())  # at most possible
    chosen = tuning.chosen["num_workers"]
    stays = rf"tuned Slow: num_workers={chosen}\b.* is faster, and stays; proved ×\d"
    assert re.search(stays, told), told
    assert f"; to keep it, write: DataLoader(…, num_workers={chosen}" in told
    report = run(tmp_path, "-m", "loaderscope", "report", recorded.name).stdout
    assert report.splitlines()[1].startswith(f"  Tuned: num_workers={chosen}")


SCRIPT = """
import sys
from torch.utils.data import DataLoader, IterableDataset

class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(8))

if __name__ == "__main__":
    print(sys.argv[1:])
    print(sum(int(batch.sum()) for batch in DataLoader(list(range(40)), batch_size=4)))
    print(len(list(DataLoader(Stream(), batch_size=4))))
    sys.exit(7)
"""


def tuned(folder: Path, *arguments: str) -> Ended:
    return ran([*LOADERSCOPE, "tune", *arguments], cwd=folder)


def test_a_script_that_ends_before_anything_is_decided(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    result = tuned(tmp_path, "--dry", "train.py", "--budget", "0.1")
    assert result.returncode == 7
    assert result.stdout.splitlines() == ["['--budget', '0.1']", "780", "2"]
    assert "Tuned list: the loop ended before anything was decided" in result.stderr
    assert "Stream is recorded, but not tuned: its data set is iterable" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_script_without_a_loader(tmp_path: Path) -> None:
    result = tuned(tmp_path, "-c", "print(5); raise SystemExit(3)")
    assert (result.returncode, result.stdout) == (3, "5\n")
    said = "nothing was recorded: the script iterated over no DataLoader"
    assert result.stderr == f"loaderscope: {said}\n"


@pytest.mark.parametrize("wrong", [[], ["--budget", "0", "train.py"], ["gone.py"]])
def test_bad_input_is_one_sentence(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", *wrong]) == 2
    said = capsys.readouterr().err
    assert said.startswith("loaderscope: ") and said.count("\n") == 1
