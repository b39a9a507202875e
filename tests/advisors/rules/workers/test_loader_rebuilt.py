"""loader-rebuilt: an iterator a step, or a loader an epoch."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
import torch

from builders import MS, T0, epoch_row
from loaderscope.advisors.case.advice import SAME
from loaderscope.advisors.case.case import Case
from rule_cases import FakeWhatIf, advice, asked, case_of, outcomes, ran, workers_config
from rule_rows import main_loop, worker_loop
from silence import silent

NAME = "loader-rebuilt"


def passes(
    path: Path,
    count: int = 60,
    batches: int = 1,
    how: int = -1,
    start_ms: float = 30.0,
    instances: bool = False,
    workers: int = 2,
    sampler: str = "RandomSampler",
    whatif: FakeWhatIf | None = None,
    slow_starts: int = 0,
) -> Case:
    lanes, epochs = [], []
    apart = 10**9 if batches > 1 else 60_000_000
    late = 0
    for n in range(count):
        slow_ms = 200 if n < slow_starts else 0
        late += slow_ms * MS
        start = T0 + n * apart + late
        if workers:
            lane = worker_loop(batches, wait_ms=25.0, epoch=n, start_ns=start, fetch_ms=4.0)
        else:
            lane = main_loop(batches, index=20.0, fetch=4.0)
            lane = [{**row, "epoch": n, "t_ns": start + k * 10**7} for k, row in enumerate(lane)]
        lanes.append(lane)
        told = {"how": how, "num_workers": workers, "instance": n * instances}
        epochs.append(epoch_row(lane, startup_ms=start_ms + slow_ms, **told))
    config = {**workers_config(workers), "sampler": f"torch.utils.data.sampler.{sampler}"}
    return case_of(path, *lanes, config=config, epochs=epochs, whatif=whatif)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_iterator_a_step(tmp_path: Path, workers: int) -> None:
    found = advice(NAME, passes(tmp_path / "usual", workers=workers))
    assert found.kind == "correctness"
    assert str(found.evidence["iterators"]) == "60"
    assert str(found.evidence["batches per iterator"]) == "1"
    assert found.predicted == SAME
    if not workers:  # a few slow starts change nothing
        spell = advice(NAME, passes(tmp_path / "spell", workers=0, slow_starts=12))
        assert spell.evidence == found.evidence
    ordered = advice(NAME, passes(tmp_path / "ordered", sampler="SequentialSampler"))
    assert "the same first samples come every time" in ordered.why


test_silent_one_step_away = silent(NAME, passes, {"count": 10}, {"batches": 8}, {"how": 1})


def test_a_loader_an_epoch(tmp_path: Path) -> None:
    an_epoch = {"count": 5, "how": 1, "instances": True, "whatif": FakeWhatIf(1.5)}
    case = passes(tmp_path / "a", batches=30, start_ms=800.0, **an_epoch)
    found = advice(NAME, case)
    assert found.kind is None and found.params == {"persistent_workers": True}
    assert asked(case) == [{"persistent_workers": True}]
    assert outcomes("persistent-workers", case) == []
    cheap = passes(tmp_path / "b", batches=300, start_ms=26.0, **an_epoch)
    assert outcomes(NAME, cheap) == []


def test_the_code_goes_on_where_the_data_ends(tmp_path: Path) -> None:
    space = ran(advice(NAME, passes(tmp_path, workers=0)).code, dataset=range(10))
    a_pass = len(space["loader"])
    batches = [space["batch"], *islice(space["batches"], 2 * a_pass - 1)]
    halves = [torch.cat(half).tolist() for half in (batches[:a_pass], batches[a_pass:])]
    assert [sorted(half) for half in halves] == [list(range(10))] * 2
