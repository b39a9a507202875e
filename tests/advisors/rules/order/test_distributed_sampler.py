"""distributed-sampler: ranks with the same data, and orders that never change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loaderscope.advisors.case.advice import SAME
from loaderscope.advisors.case.case import Case
from rule_cases import advice, case_of
from rule_rows import rows_of
from silence import silent

NAME = "distributed-sampler"
RANDOM = "torch.utils.data.sampler.RandomSampler"
SEQUENTIAL = "torch.utils.data.sampler.SequentialSampler"
DISTRIBUTED = "torch.utils.data.distributed.DistributedSampler"


def case(
    tmp_path: Path,
    *,
    world: int | None = 2,
    sampler: str = RANDOM,
    length: int = 240,
    epochs: int = 2,
    digests: tuple[int, ...] = (),
    kind: str = "map",
    rank: int = 0,
    batches: int = 60,
    shuffle: bool | None = True,
) -> Case:
    """Epochs of 60 batches of 4; `digests` are those of the first batch of each."""
    rows, told = with_digests(epochs, batches, digests)
    config: dict[str, Any] = {"sampler": sampler, "dataset_len": length, "dataset_kind": kind}
    config |= {"dataset": "train.Texts", "shuffle": shuffle}
    config["sampler_plain"] = sampler != DISTRIBUTED
    process = {"world_size": world, "rank": rank}
    return case_of(tmp_path, rows, epochs=told, config=config, process=process)


def with_digests(epochs: int, batches: int, digests: tuple[int, ...]) -> tuple[Any, Any]:
    rows, told = rows_of(epochs, batches)
    for epoch, digest in enumerate(digests):
        rows[epoch * batches]["digest"] = digest
    return rows, told


def test_ranks_that_each_read_everything_are_told(tmp_path: Path) -> None:
    found = advice(NAME, case(tmp_path))
    assert found.predicted.mid == 2.0
    assert "DistributedSampler(dataset, shuffle=True, drop_last=False)" in found.code
    assert "batch_size=4, sampler=sampler)" in found.code
    assert str(found.evidence["drawn by this rank per epoch"]) == "240 samples"
    assert str(found.evidence["of the data set"]) == "100 %"


# An order that never changes; a generator seeded in each epoch.
STILL = {"sampler": DISTRIBUTED, "length": 480, "epochs": 3, "digests": (7, 7, 7)}
SEEDED = {"world": None, "epochs": 4, "digests": (7, 7, 7, 7)}


@pytest.mark.parametrize(
    ("options", "title", "code", "evidence"),
    [
        (STILL, "set_epoch", "set_epoch(epoch)", None),
        (SEEDED, "", "", ("epochs that begin with the same batch", "4 of 4")),
    ],
)
def test_what_is_wrong_with_the_order_is_told(tmp_path, options, title, code, evidence):
    found = advice(NAME, case(tmp_path, **options))
    assert title in found.title and code in found.code and found.predicted == SAME
    assert evidence is None or str(found.evidence[evidence[0]]) == evidence[1]


test_it_is_silent_one_step_away = silent(
    NAME,
    case,
    {"world": 1},
    {"world": None},
    {"length": 480},  # half of it each: sharded somehow
    {"kind": "iterable"},
    {"sampler": "accelerate.data_loader.BatchSamplerShard"},
    {**SEEDED, "sampler": SEQUENTIAL},
    {**STILL, "digests": (7, 8, 9)},
    {**STILL, "epochs": 2, "digests": (7, 7)},
    *({**STILL, "shuffle": each} for each in (False, None)),
    {**SEEDED, "batches": 2},  # too few batches to differ
)
