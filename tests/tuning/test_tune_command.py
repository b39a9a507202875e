"""`loaderscope tune`: the script as it is, its exit code, a sentence where nothing was tuned."""

from __future__ import annotations

from pathlib import Path

import pytest

from started import LOADERSCOPE, Ended, ran

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
    assert (
        result.stderr
        == "loaderscope: nothing was recorded: the script iterated over no DataLoader\n"
    )


@pytest.mark.parametrize("wrong", [[], ["--budget", "0", "train.py"], ["gone.py"]])
def test_bad_input_is_one_sentence(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    from loaderscope.cli import main

    assert main(["tune", *wrong]) == 2
    said = capsys.readouterr().err
    assert said.startswith("loaderscope: ") and said.count("\n") == 1
