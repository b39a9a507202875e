"""hot-function: what the source proves to be slow, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader

from loaderscope.advisors.case.case import Case
from loaderscope.profiler.record.inspect.inspect_loader import inspect_loader
from rule_cases import FakeWhatIf, advice, asked, case_of, unmeasured
from rule_rows import fetched
from silence import silent
from stored_sets import Listed, Sized
from written_sets import with_getitem

NAME = "hot-function"
FRAME = {"name": "frame", "kind": "dataframe", "type": "pandas.DataFrame", "shape": [40, 3]}


class Frame(Sized):
    frame: Any = None

    def __init__(self) -> None:
        super().__init__()
        self.frame = None

    def __getitem__(self, index: int) -> Any:
        row = self.frame.iloc[index]
        return row["a"], row.b


def case(
    tmp_path: Path,
    dataset: Any,
    sample_us: float = 100.0,
    idle: float = 0.02,
    compute_ms: float = 0.1,
    **options: Any,
) -> Case:
    rows, epochs = fetched(sample_us, idle, compute_ms=compute_ms)
    facts: Any = {"loader": DataLoader(dataset, batch_size=4), "whatif": FakeWhatIf(), **options}
    return case_of(tmp_path, rows, epochs=epochs, **facts)


def with_frame(tmp_path: Path, dataset: Any = None, **options: Any) -> Case:
    dataset = dataset or Frame()
    seen = inspect_loader(DataLoader(dataset, batch_size=4))
    seen["dataset"]["attributes"] = [FRAME]
    return case(tmp_path, dataset, inspection=seen, **options)


def test_rows_of_a_data_frame_become_arrays(tmp_path: Path) -> None:
    made = with_frame(tmp_path / "a")
    found = advice(NAME, made)
    assert "DataFrame" in found.why and "# in __init__ of Frame" in found.code
    assert asked(made) == [{"fetch": (pytest.approx(0.05), 0.7)}]
    # In memory, it only waits for a core.
    assert advice(NAME, with_frame(tmp_path / "c", idle=0.6)).predicted.mid == 2.0
    # A row that is a small part of a sample promises little.
    made = with_frame(tmp_path / "b", sample_us=3000.0)
    advice(NAME, made)
    assert asked(made)[0]["fetch"] == pytest.approx((0.8, 0.99))


ARCHIVE = with_getitem(Listed, "return np.load(self.files[i])['x']", np=np)(["x.npz"] * 40)
COMPUTING = with_getitem(Sized, "return np.linalg.svd(np.random.rand(30, 30))", np=np)
LISTED = "import os\nreturn torch.tensor(len(os.listdir(self.frame)))"


@pytest.mark.parametrize(
    ("dataset", "word"),
    [
        (with_getitem(Frame, "import json\nreturn json.loads(self.frame[i])")(), "json"),
        (with_getitem(Frame, "return PlyData.read(self.frame[i])")(), "plyfile"),
        (with_getitem(Frame, "return torch.load(self.frame[i])")(), "torch.load"),
        (with_getitem(Frame, LISTED)(), "listing a folder"),
        (ARCHIVE, "npz"),
    ],
)
def test_known_slow_calls_are_named(tmp_path: Path, dataset: Any, word: str) -> None:
    made = case(tmp_path, dataset, 900.0)
    assert word in advice(NAME, made).why.lower()
    low, high = asked(made)[0]["fetch"]
    assert 0 < low < high < 1


def test_what_the_source_does_not_prove_is_left_to_stacks(tmp_path: Path) -> None:
    assert "stacks were not recorded" in unmeasured(NAME, case(tmp_path, COMPUTING(), 900.0))


test_it_is_silent_one_step_away = silent(
    NAME,
    with_frame,
    {"sample_us": 5.0},  # only looked up
    {"compute_ms": 100.0},  # loading is not what limits training
    {"dataset": COMPUTING()},  # a frame alone is no row access
    {"dataset": ARCHIVE, "sample_us": 900.0, "idle": 0.6},  # waiting for files
)
