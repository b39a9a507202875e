"""dispatch-batches: Accelerate's dispatcher, which lets rank 0 make the batches of all ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders import MS
from loaderscope.advisors.case.case import Case
from rule_cases import FakeWhatIf, advice, asked, case_of, outcomes
from rule_rows import rows_of
from silence import silent

NAME = "dispatch-batches"


def case(tmp_path: Path, *, world: int = 4, cpus: float | None = None, **config: Any) -> Case:
    rows, epochs = rows_of(2, 40, wait_ms=8.0, compute_ms=2.0, fetch_ns=7 * MS, collate_ns=MS)
    told = {"dataset_kind": "map", "framework": "accelerate", "dispatched": True, **config}
    process = {"world_size": world, "rank": 0}
    found = case_of(
        tmp_path, rows, epochs=epochs, process=process, whatif=FakeWhatIf(), config=told
    )
    if cpus is not None:
        object.__setattr__(found.system, "effective_cpus", cpus)
    return found


def test_each_rank_could_make_its_own(tmp_path: Path) -> None:
    seen = case(tmp_path / "a")
    found = advice(NAME, seen)
    assert "DataLoaderConfiguration(dispatch_batches=False)" in found.code
    assert "By hand" not in found.code
    assert str(found.evidence["fetching a batch"]) == "7.00 ms" and "by itself" not in found.why
    assert asked(seen) == [dict.fromkeys(("fetch", "collate"), pytest.approx((0.25, 0.625)))]
    few = case(tmp_path / "b", cpus=0.5)  # ranks short of cores may gain nothing
    advice(NAME, few)
    assert asked(few)[0]["fetch"] == (0.25, 1.0)
    trainer = case(tmp_path / "c", made_by="transformers", framework="transformers")
    option = 'TrainingArguments(accelerator_config={"dispatch_batches": False})'
    assert option in advice(NAME, trainer).code


def test_a_stream_must_share_itself_out(tmp_path: Path) -> None:
    found = advice(NAME, case(tmp_path, dataset_kind="iterable"))
    assert "chooses that by itself" in found.why
    assert "accelerator.process_index" in found.code
    assert "whole stream" in (found.caveat or "")


test_silent = silent(NAME, case, {"world": 1}, {"dispatched": None})


def test_the_ranks_are_not_told_that_they_read_the_same(tmp_path: Path) -> None:
    sampler = "torch.utils.data.sampler.SequentialSampler"
    drawn: Any = {"sampler": sampler, "dataset_len": 160, "batch_size": 4}
    for dispatched, told in ((True, 0), (None, 1)):
        seen = case(tmp_path / str(told), dispatched=dispatched, **drawn)
        assert len(outcomes("distributed-sampler", seen)) == told
