"""loader-rebuilt: an iterator a step, or a loader an epoch."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from builders import MS, T0, epoch_row
from loaderscope.advisors.case.case import Case
from rule_cases import FakeWhatIf, advice, case_of, outcomes, workers_config
from rule_rows import main_loop, worker_loop

NAME = "loader-rebuilt"


def passes(
    path: Path, count: int = 60, batches: int = 1, how: int = -1, start_ms: float = 30.0, instances: bool = False,
    workers: int = 2, sampler: str = "RandomSampler", whatif: FakeWhatIf | None = None, slow_starts: int = 0,
) -> Case:  # fmt: skip
    lanes, epochs = [], []
    apart = 10**9 if batches > 1 else 60_000_000
    late = 0
    for n in range(count):
        slow_ms = 200 if n < slow_starts else 0
        late += slow_ms * MS
        lane = (
            worker_loop(batches, wait_ms=25.0, epoch=n, start_ns=T0 + n * apart + late, fetch_ms=4.0)
            if workers
            else [{**row, "epoch": n, "t_ns": T0 + n * apart + late + k * 10**7}
                  for k, row in enumerate(main_loop(batches, index=20.0, fetch=4.0))]
        )  # fmt: skip
        lanes.append(lane)
        epochs.append(
            epoch_row(
                lane,
                startup_ms=start_ms + slow_ms,
                how=how,
                num_workers=workers,
                instance=n * instances,
            )
        )
    config = {**workers_config(workers), "sampler": f"torch.utils.data.sampler.{sampler}"}
    return case_of(path, *lanes, config=config, epochs=epochs, whatif=whatif)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_iterator_a_step(tmp_path: Path, workers: int) -> None:
    found = advice(NAME, passes(tmp_path, workers=workers))
    assert found.kind == "correctness"
    assert str(found.evidence["iterators"]) == "60"
    assert str(found.evidence["batches per iterator"]) == "1"
    assert 1.0 < found.predicted.low <= found.predicted.mid <= found.predicted.high


def test_a_few_slow_starts_change_nothing(tmp_path: Path) -> None:
    usual = advice(NAME, passes(tmp_path / "usual", workers=0))
    spell = advice(NAME, passes(tmp_path / "spell", workers=0, slow_starts=12))
    assert spell.predicted == usual.predicted
    assert spell.evidence == usual.evidence


def test_without_a_shuffle_it_is_always_the_same_data(tmp_path: Path) -> None:
    assert (
        "the same first samples come every time"
        in advice(NAME, passes(tmp_path, sampler="SequentialSampler")).why
    )


@pytest.mark.parametrize("change", [{"count": 10}, {"batches": 8}, {"how": 1}])
def test_silent_one_step_away(tmp_path: Path, change: dict[str, Any]) -> None:
    assert outcomes(NAME, passes(tmp_path, **change)) == []


def test_a_loader_an_epoch(tmp_path: Path) -> None:
    whatif = FakeWhatIf(1.5)
    case = passes(
        tmp_path, count=5, batches=30, how=1, start_ms=800.0, instances=True, whatif=whatif
    )
    found = advice(NAME, case)
    assert found.kind is None and found.params == {"persistent_workers": True}
    assert whatif.asked == [{"persistent_workers": True}]
    assert outcomes("persistent-workers", case) == []


def test_a_loader_an_epoch_that_costs_nothing(tmp_path: Path) -> None:
    case = passes(
        tmp_path, count=5, batches=300, how=1, start_ms=26.0, instances=True, whatif=FakeWhatIf()
    )
    assert outcomes(NAME, case) == []


def test_the_code_goes_on_where_the_data_ends(tmp_path: Path) -> None:
    code = advice(NAME, passes(tmp_path, workers=0)).code
    space: dict[str, Any] = {"dataset": range(10)}
    exec(code, space)
    a_pass = len(space["loader"])
    batches = [space["batch"], *islice(space["batches"], 2 * a_pass - 1)]
    halves = [torch.cat(half).tolist() for half in (batches[:a_pass], batches[a_pass:])]
    assert [sorted(half) for half in halves] == [list(range(10))] * 2
