"""persistent-workers: epoch starts that cost time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders import MS, T0, epoch_row
from loaderscope.advisors.case.case import Case
from rule_cases import FakeWhatIf, advice, arguments, case_of, outcomes, workers_config
from rule_rows import worker_loop

NAME = "persistent-workers"


def epochs_case(
    path: Path,
    start_ms: float = 600.0,
    batches: int = 50,
    answer: float = 1.4,
    instance: bool = False,
    first_index_ms: float = 0.0,
    **config: Any,
) -> Case:
    lanes, epochs = [], []
    for epoch in range(4):
        times: Any = {"wait_ms": 3.0, "compute_ms": 10.0, "start_ns": T0 + epoch * 10**12}
        lanes.append(worker_loop(batches, epoch=epoch, **times))
        lanes[-1][0]["index_ns"] = round(first_index_ms * MS)
        own = {"startup_ms": start_ms, "num_workers": 2, "instance": epoch * instance}
        epochs.append(epoch_row(lanes[-1], **own))
    told = workers_config(2, persistent_workers=False, **config)
    return case_of(path, *lanes, whatif=FakeWhatIf(answer), config=told, epochs=epochs)


def test_fires_for_short_epochs(tmp_path: Path) -> None:
    found = advice(NAME, epochs_case(tmp_path, start_method="spawn"))
    assert found.params == {"persistent_workers": True}
    assert arguments(found.code)["persistent_workers"] == "True"
    assert str(found.evidence["an epoch's start"]) == "600 ms"
    assert str(found.evidence["workers"]) == "2 by spawn"


@pytest.mark.parametrize(
    "change",
    [
        {"start_ms": 20.0},
        {"batches": 2000, "start_method": "spawn"},
        {"instance": True},
        {"first_index_ms": 500.0},
    ],
)
def test_silent_one_step_away(tmp_path: Path, change: dict[str, Any]) -> None:
    assert outcomes(NAME, epochs_case(tmp_path, **change)) == []


def test_silent_where_they_are_kept_already_or_there_are_none(tmp_path: Path) -> None:
    kept, once = (workers_config(2, persistent_workers=each) for each in (True, False))
    for name, config in (("kept", kept), ("none", None), ("once", once)):
        lane = worker_loop(50, wait_ms=3.0)
        case = case_of(tmp_path / name, lane, whatif=FakeWhatIf(), config=config)
        assert outcomes(NAME, case) == [], name
