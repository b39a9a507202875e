"""hot-function: what the source proves to be slow, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from loaderscope.advisors.case.case import Case
from rule_cases import FakeWhatIf, advice, case_of, outcomes, unmeasured
from rule_rows import US, rows_of

NAME = "hot-function"
FRAME = {"name": "frame", "kind": "dataframe", "type": "pandas.DataFrame", "shape": [40, 3]}


class Frame(Dataset[Any]):
    def __init__(self) -> None:
        self.frame: Any = None

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> Any:
        row = self.frame.iloc[index]
        return row["a"], row.b


class Json(Frame):
    def __getitem__(self, index: int) -> Any:
        import json

        return json.loads(self.frame[index])


class Ply(Frame):
    def __getitem__(self, index: int) -> Any:
        return PlyData.read(self.frame[index])  # type: ignore[name-defined]  # noqa: F821


class Archive(Frame):
    def __init__(self) -> None:
        self.paths = [f"data/{n}.npz" for n in range(40)]

    def __getitem__(self, index: int) -> Any:
        return np.load(self.paths[index])["x"]


class Saved(Frame):
    def __getitem__(self, index: int) -> Any:
        return torch.load(self.frame[index])


class Listed(Frame):
    def __getitem__(self, index: int) -> Any:
        import os

        return torch.tensor(len(os.listdir(self.frame)))


class Elements(Frame):
    def __init__(self) -> None:
        self.values = torch.randn(40, 30)

    def __getitem__(self, index: int) -> Any:
        return sum(float(self.values[index, k]) for k in range(30))


class Computing(Frame):
    def __getitem__(self, index: int) -> Any:
        return np.linalg.svd(np.random.rand(30, 30))


def case(
    tmp_path: Path, dataset: Any, sample_us: float = 100.0, idle: float = 0.02, **options: Any
) -> Case:
    fetch = round(sample_us * 4 * US)
    rows, epochs = rows_of(
        wait_ms=fetch / 1e6 + 0.05, compute_ms=options.pop("compute_ms", 0.1), fetch_ns=fetch, collate_ns=10 * US,
        samples=4, fetch_cpu_ns=round(fetch * (1 - idle)),
    )  # fmt: skip
    made = case_of(
        tmp_path, rows, epochs=epochs, loader=DataLoader(dataset, batch_size=4), **options
    )
    return made


def with_frame(tmp_path: Path, **options: Any) -> Case:
    from loaderscope.profiler.record.inspect.inspect_loader import inspect_loader

    seen = inspect_loader(DataLoader(Frame(), batch_size=4))
    seen["dataset"]["attributes"] = [FRAME]
    return case(tmp_path, Frame(), inspection=seen, **options)


def test_rows_of_a_data_frame_become_arrays(tmp_path: Path) -> None:
    whatif = FakeWhatIf()
    found = advice(NAME, with_frame(tmp_path, whatif=whatif))
    assert "DataFrame" in found.why and "dataset.frame = stand_in(dataset.frame)" in found.code
    assert whatif.asked == [{"fetch": (pytest.approx(0.05), 0.7)}]


def test_a_row_that_is_a_small_part_of_a_sample_promises_little(tmp_path: Path) -> None:
    whatif = FakeWhatIf()
    advice(NAME, with_frame(tmp_path, sample_us=3000.0, whatif=whatif))
    low, high = whatif.asked[0]["fetch"]
    assert low == pytest.approx(0.8) and high == pytest.approx(0.99)


@pytest.mark.parametrize(
    ("dataset", "word"),
    [
        *((Json(), "json"), (Ply(), "plyfile"), (Archive(), "npz"), (Elements(), "element")),
        *((Saved(), "torch.load"), (Listed(), "listing a folder")),
    ],
)
def test_known_slow_calls_are_named(tmp_path: Path, dataset: Any, word: str) -> None:
    whatif = FakeWhatIf()
    found = advice(NAME, case(tmp_path, dataset, 900.0, whatif=whatif))
    assert word in found.why.lower()
    low, high = whatif.asked[0]["fetch"]
    assert 0 < low < high < 1


def test_what_the_source_does_not_prove_is_left_to_stacks(tmp_path: Path) -> None:
    assert "stacks were not recorded" in unmeasured(NAME, case(tmp_path, Computing(), 900.0))


@pytest.mark.parametrize(
    "options",
    [
        {"sample_us": 5.0},  # only looked up
        {"compute_ms": 100.0},  # loading is not what limits training
    ],
)
def test_it_is_silent_one_step_away(tmp_path: Path, options: dict[str, Any]) -> None:
    assert outcomes(NAME, with_frame(tmp_path, **options)) == []


def test_files_that_are_waited_for_are_a_matter_of_storage(tmp_path: Path) -> None:
    assert outcomes(NAME, case(tmp_path, Archive(), 900.0, idle=0.6)) == []


def test_a_frame_in_memory_only_waits_for_a_core(tmp_path: Path) -> None:
    assert advice(NAME, with_frame(tmp_path, idle=0.6)).predicted.mid == 2.0


def test_a_frame_alone_is_no_row_access(tmp_path: Path) -> None:
    from loaderscope.profiler.record.inspect.inspect_loader import inspect_loader

    seen = inspect_loader(DataLoader(Computing(), batch_size=4))
    seen["dataset"]["attributes"] = [FRAME]
    assert outcomes(NAME, case(tmp_path, Computing(), 100.0, inspection=seen)) == []
