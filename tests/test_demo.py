"""The demonstration, small: the pictures, the training, the comparison."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from loaderscope.demo import QUICK, Pictures, Size, pictures
from loaderscope.profiler.base.errors import UsageError
from started import ran

SMALL = Size(pictures=5, pixels=32, batch=2, epochs=1, channels=2)


def test_pictures_are_real_made_once_and_repaired(tmp_path: Path) -> None:
    told: list[str] = []
    folder = pictures(tmp_path, SMALL, told.append)
    files = sorted(folder.glob("*.png"))
    assert len(files) == 5
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files)
    assert len({file.read_bytes() for file in files}) == 5
    assert pictures(tmp_path, SMALL, told.append) == folder
    assert len(told) == 1
    files[0].unlink()
    assert len(list(pictures(tmp_path, SMALL, told.append).glob("*.png"))) == 5
    assert len(told) == 2
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]  # nothing half-made is left


def test_whoever_asks_sees_how_far_it_is(tmp_path: Path) -> None:
    seen: list[int] = []

    def track(numbers: Iterable[int]) -> Iterator[int]:
        for number in numbers:
            seen.append(number)
            yield number

    folder = pictures(tmp_path, SMALL, track=track)
    assert seen == [0, 1, 2, 3, 4]
    assert len(list(folder.glob("*.png"))) == 5


def test_the_data_set_can_be_sent_to_a_worker(tmp_path: Path) -> None:
    dataset = pickle.loads(pickle.dumps(Pictures(pictures(tmp_path, SMALL))))
    image, label = dataset[3]
    assert (tuple(image.shape), image.is_contiguous(), label) == ((3, 32, 32), True, 3)
    assert len(dataset) == 5


def test_a_cache_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="LOADERSCOPE_CACHE"):
        pictures(tmp_path / "file" / "cache", SMALL)


def test_quick_demo_compares_what_it_measured() -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    call = [sys.executable, "-m", "loaderscope", "demo", "--quick"]
    done = ran(call, env=env)
    assert done.returncode == 0, done.stderr
    batches = QUICK.pictures // QUICK.batch * QUICK.epochs
    lines = done.stdout.splitlines()
    assert f"{batches} batches" in done.stdout and len(lines) + done.stderr.count("\n") <= 45
    assert [line.split()[:2] for line in lines[-3:]] == [
        ["loaderscope", verb] for verb in ("run", "report", "top")
    ]
    before, after = (
        next(line for line in lines if line.startswith(f"{when} ")) for when in ("before", "after")
    )
    assert before.startswith("before") and "samples/s" in before
    assert " ×" in after
    assert " the throughput, measured" in " ".join(done.stdout.split())  # lines are wrapped
