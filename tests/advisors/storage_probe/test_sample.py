"""The sample: reproducible, and within its bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from loaderscope.advisors.storage_probe.bounds import Bounds, read_size
from loaderscope.advisors.storage_probe.run_probe import choose
from loaderscope.advisors.storage_probe.source import Data, find_data
from loaderscope.profiler.base.errors import UsageError


def data(*sizes: int) -> Data:
    files = tuple((f"/x/{n:04d}", size) for n, size in enumerate(sizes))
    return Data("x", "", files, len(files), sum(sizes), (Path("/x"),), False)


def test_a_seed_decides_the_sample() -> None:
    first, again, other = (
        choose(data(*[10] * 500), Bounds(5000, 20, 1), seed=seed) for seed in (3, 3, 4)
    )
    assert first == again
    assert set(first) != set(other)
    assert len(set(first)) == 20


def test_the_sample_keeps_to_files_and_bytes() -> None:
    assert len(choose(data(*[10] * 100), Bounds(55, 100, 1), seed=0)) == 5
    assert len(choose(data(*[0] * 100), Bounds(1, 7, 1), seed=0)) == 7


def test_a_huge_sparse_file_is_passed_over(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.bin").write_bytes(b"x")
    with (tmp_path / "huge.bin").open("wb") as file:
        file.truncate(1 << 40)
    chosen = choose(find_data(tmp_path, 5), Bounds(1 << 20, 100, 1), seed=0)
    assert sorted(Path(path).name for path, _ in chosen) == ["a.bin", "b.bin", "c.bin"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4096", 4096),
        ("64MB", 64_000_000),
        ("1.5 GB", 1_500_000_000),
        ("2GiB", 2 << 30),
        ("10k", 10_000),
        ("7b", 7),
    ],
)
def test_sizes_are_read_as_people_write_them(text: str, expected: int) -> None:
    assert read_size(text) == expected


@pytest.mark.parametrize("text", ["", "MB", "-1", "1e9", "1 XB", "٣", "1" * 40, "nan"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a size"):
        read_size(text)


@pytest.mark.parametrize("bad", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, float("nan"))])
def test_bounds_that_cannot_be_meant_are_refused(bad: tuple[int, int, float]) -> None:
    with pytest.raises(UsageError):
        Bounds(*bad).check()
