"""dispatch-batches: Accelerate's dispatcher, which lets rank 0 make the batches of all ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders import MS
from loaderscope.advisors.case.case import Case
from rule_cases import FakeWhatIf, advice, case_of, outcomes
from rule_rows import rows_of

NAME = "dispatch-batches"


def case(tmp_path: Path, *, world: int = 4, cpus: float | None = None, **config: Any) -> Case:
    rows, epochs = rows_of(2, 40, wait_ms=8.0, compute_ms=2.0, fetch_ns=7 * MS, collate_ns=MS)
    told = {"dataset_kind": "map", "framework": "accelerate", "dispatched": True, **config}
    found = case_of(
        tmp_path,
        rows,
        epochs=epochs,
        process={"world_size": world, "rank": 0},
        whatif=FakeWhatIf(),
        config=told,
    )
    if cpus is not None:
        object.__setattr__(found.system, "effective_cpus", cpus)
    return found


def test_each_rank_could_make_its_own(tmp_path: Path) -> None:
    seen = case(tmp_path)
    found = advice(NAME, seen)
    assert "DataLoaderConfiguration(dispatch_batches=False)" in found.code
    assert "By hand" not in found.code
    assert str(found.evidence["fetching a batch"]) == "7.00 ms" and "by itself" not in found.why
    (asked,) = seen.whatif.asked  # type: ignore[union-attr]
    assert asked == {"fetch": (0.25, pytest.approx(0.625)), "collate": (0.25, pytest.approx(0.625))}


def test_ranks_short_of_cores_may_gain_nothing(tmp_path: Path) -> None:
    seen = case(tmp_path, cpus=0.5)
    advice(NAME, seen)
    (asked,) = seen.whatif.asked  # type: ignore[union-attr]
    assert asked["fetch"] == (0.25, 1.0)


def test_a_stream_must_share_itself_out(tmp_path: Path) -> None:
    found = advice(NAME, case(tmp_path, dataset_kind="iterable"))
    assert "chooses that by itself" in found.why
    assert "accelerator.process_index" in found.code
    assert found.caveat is not None
    assert "whole stream" in found.caveat


def test_the_trainer_has_an_option_for_it(tmp_path: Path) -> None:
    found = advice(NAME, case(tmp_path, made_by="transformers", framework="transformers"))
    assert 'TrainingArguments(accelerator_config={"dispatch_batches": False})' in found.code


@pytest.mark.parametrize("change", [{"world": 1}, {"dispatched": None}])
def test_silent(tmp_path: Path, change: dict[str, Any]) -> None:
    assert outcomes(NAME, case(tmp_path, **change)) == []


def test_the_ranks_are_not_told_that_they_read_the_same(tmp_path: Path) -> None:
    sampler = {
        "sampler": "torch.utils.data.sampler.SequentialSampler",
        "dataset_len": 160,
        "batch_size": 4,
    }
    read = [
        outcomes("distributed-sampler", case(tmp_path / str(d), dispatched=d, **sampler))
        for d in (True, None)
    ]
    assert read[0] == [] and len(read[1]) == 1
