"""`loaderscope tune`: the script as it is, its exit code, a sentence where nothing was tuned."""

from __future__ import annotations

from pathlib import Path

import pytest

from started import LOADERSCOPE, Ended, python, ran

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


ARRAYS = """
import sys
import time
import zlib
import torch
from torch.utils.data import DataLoader, TensorDataset, random_split

if __name__ == "__main__":
    torch.manual_seed(0)
    rows = TensorDataset(torch.rand(200_000, 8), torch.arange(200_000))
    train, _ = random_split(rows, [192_000, 8_000])
    loader = DataLoader(train, batch_size=128, shuffle=True, num_workers=2)
    model, seen = torch.nn.Linear(8, 1), 0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    until = time.monotonic() + float(sys.argv[1])
    epoch = 0
    while epoch < 6 or time.monotonic() < until:
        epoch += 1
        for values, numbers in loader:
            loss = model(values).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen = zlib.crc32(numbers.numpy().tobytes(), seen)
        print(seen, loss.item())
"""


def tuned(folder: Path, *arguments: str) -> Ended:
    return ran([*LOADERSCOPE, "tune", *arguments], cwd=folder)


def test_a_script_that_ends_before_anything_is_decided(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    result = tuned(tmp_path, "--dry", "--any-order", "train.py", "--budget", "0.1")
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


@pytest.mark.parametrize(
    "wrong", [[], ["--budget", "0", "train.py"], ["--steps", "no", "train.py"], ["gone.py"]]
)
def test_bad_input_is_one_sentence(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    from loaderscope.cli import main

    assert main(["tune", *wrong]) == 2
    said = capsys.readouterr().err
    assert said.startswith("loaderscope: ") and said.count("\n") == 1


@pytest.mark.slow
def test_whole_batches_by_one_look_up_end_to_end(tmp_path: Path) -> None:
    """What is proven stays, its code is in the report, and the training is the same."""
    (tmp_path / "train.py").write_text(ARRAYS)
    bare = python("train.py", "0", cwd=tmp_path, check=True)
    result = tuned(tmp_path, "--quiet", "--runs", "runs", "train.py", "60")
    assert result.returncode == 0 and result.stdout.startswith(bare.stdout) and bare.stdout
    assert "whole batches by one lookup is faster, and stays" in result.stderr
    assert "take the code of the advice batched-getitems" in result.stderr
    (run,) = (tmp_path / "runs").iterdir()
    told = ran([*LOADERSCOPE, "report", "--full", run], cwd=tmp_path, check=True).stdout
    assert "proved ×" in told and "batched-getitems" in told
    assert "class BatchIndices(Sampler):" in told
