"""worker-startup: a heavy data set is pickled to every worker."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from builders import epoch_row
from loaderscope.advisors.case.case import Case
from loaderscope.profiler.store.inspection import Inspection
from rule_cases import FakeWhatIf, advice, asked, case_of, ran, unmeasured, workers_config
from rule_rows import worker_loop
from silence import silent

NAME = "worker-startup"


class Held(SimpleNamespace):
    """A data set that holds what a test gives it."""

    def __len__(self) -> int:
        return 3


HEAVY = [
    {"name": "table", "kind": "ndarray", "type": "numpy.ndarray", "nbytes": 900_000_000},
    {"name": "names", "kind": "texts", "type": "list", "length": 500_000},
    {"name": "labels", "kind": "numbers", "type": "list", "length": 500_000},
]


def started(
    path: Path,
    start_ms: float = 6000.0,
    method: str = "spawn",
    attributes: Any = HEAVY,
    batches: int = 100,
    dataset: Any = None,
) -> Case:
    rows = worker_loop(batches, wait_ms=5.0)
    part = dataset or {"type": "train.Rows", "name": "Rows", "attributes": attributes}
    epochs = [epoch_row(rows, startup_ms=start_ms, num_workers=2)]
    facts: Any = {"config": workers_config(2, start_method=method), "inspection": {"dataset": part}}
    return case_of(path, rows, whatif=FakeWhatIf(1.6), epochs=epochs, **facts)


def test_fires_for_a_heavy_data_set(tmp_path: Path) -> None:
    case = started(tmp_path)
    found = advice(NAME, case)
    assert str(found.evidence["a start"]) == "6.00 s"
    assert str(found.evidence["Rows.table"]) == "900 MB (ndarray)"
    assert asked(case) == [{"startup": (0.2, 0.8)}]
    # The code keeps what the data set holds.
    dataset = Held(table=np.arange(6.0), names=["a", "bé", ""], labels=[3, 1, 2])
    ran(found.code, dataset=dataset)
    assert dataset.table.tolist() == list(range(6))
    assert [dataset.names[i] for i in range(3)] == list(dataset.names) == ["a", "bé", ""]
    assert dataset.labels.tolist() == [3, 1, 2]
    kinds = {type(value).__name__ for value in vars(dataset.names).values()}
    assert kinds == {"Tensor"}  # shared, not pickled


test_silent_one_step_away = silent(
    NAME,
    started,
    {"start_ms": 500.0},
    {"method": "fork"},
    {"batches": 20_000},
    {"attributes": [{**HEAVY[0], "kind": "tensor", "type": "torch.Tensor"}]},
    {"attributes": [{**HEAVY[1], "length": 500}]},
)


@pytest.mark.parametrize(
    ("outer", "attribute", "code"),
    [
        ("torch.utils.data.dataset.Subset", "dataset", "dataset.dataset.table"),
        ("torch.utils.data.dataset.ConcatDataset", None, "dataset.datasets[0].table"),
        ("train.Crop", "inner", "dataset.inner.table"),
    ],
)
def test_wrapped_data_sets_are_reached(tmp_path, outer, attribute, code):
    held = [{"name": attribute, "kind": "dataset", "type": "x"}] if attribute else []
    inner = {"type": "train.Rows", "name": "Rows", "attributes": HEAVY[:1]}
    told = {"type": outer, "name": outer.rpartition(".")[2], "bases": [outer], "attributes": held}
    found = advice(NAME, started(tmp_path, dataset={**told, "children": [inner]}))
    assert f"{code} = torch.from_numpy({code})" in found.code


def test_without_inspection_it_says_so(tmp_path: Path) -> None:
    case = started(tmp_path)
    unseen = replace(case.loader, inspection=Inspection())
    assert unmeasured(NAME, replace(case, loader=unseen))
