"""distributed-sampler: ranks with the same data, orders that never change. dispatch-batches: rank 0
makes the batches of all. rank-imbalance: a rank whose data takes longer than the others'."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders import MS, RunBuilder
from loaderscope.advisors.case.advice import SAME
from loaderscope.advisors.case.case import Case
from loaderscope.advisors.stage_model.ranks import ranks_of
from loaderscope.profiler.store.run.loader_summary import summary_of
from loaderscope.profiler.store.run.run_reader import open_run
from rule_cases import advice, asked, case_of, outcomes, shown
from rule_rows import rows_of
from silence import silent

SAMPLER = "distributed-sampler"
RANDOM = "torch.utils.data.sampler.RandomSampler"
SEQUENTIAL = "torch.utils.data.sampler.SequentialSampler"
DISTRIBUTED = "torch.utils.data.distributed.DistributedSampler"


def drawn(tmp_path, world=2, length=240, epochs=2, digests=(), batches=60, **config) -> Case:
    """Epochs of 60 batches of 4; `digests` are those of the first batch of each."""
    rows, told = rows_of(epochs, batches)
    for epoch, digest in enumerate(digests):
        rows[epoch * batches]["digest"] = digest
    known = {"sampler": RANDOM, "dataset_kind": "map", "dataset": "train.Texts", "shuffle": True}
    known |= {"dataset_len": length, **config}
    known["sampler_plain"] = known["sampler"] != DISTRIBUTED
    process = {"world_size": world, "rank": 0}
    return case_of(tmp_path, rows, epochs=told, config=known, process=process)


def test_ranks_that_each_read_everything_are_told(tmp_path: Path) -> None:
    found = advice(SAMPLER, drawn(tmp_path))
    assert found.predicted.mid == 2.0
    assert "DistributedSampler(dataset, shuffle=True, drop_last=False)" in found.code
    assert "batch_size=4, sampler=sampler)" in found.code
    figures = shown(found, "drawn by this rank per epoch", "of the data set")
    assert figures == ("240 samples", "100 %")


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
    found = advice(SAMPLER, drawn(tmp_path, **options))
    assert title in found.title and code in found.code and found.predicted == SAME
    assert evidence is None or shown(found, evidence[0]) == evidence[1:]


test_the_sampler_is_silent = silent(
    SAMPLER,
    drawn,
    {"world": 1},
    {"world": None},
    {"length": 480},  # half of it each: sharded somehow
    {"dataset_kind": "iterable"},
    {"sampler": "accelerate.data_loader.BatchSamplerShard"},
    {**SEEDED, "sampler": SEQUENTIAL},
    {**STILL, "digests": (7, 8, 9)},
    {**STILL, "epochs": 2, "digests": (7, 7)},
    *({**STILL, "shuffle": each} for each in (False, None)),
    {**SEEDED, "batches": 2},  # too few batches to differ
)


DISPATCH = "dispatch-batches"


def dispatched(tmp_path: Path, *, world: int = 4, cpus: float | None = None, **config: Any) -> Case:
    rows, epochs = rows_of(2, 40, wait_ms=8.0, compute_ms=2.0, fetch_ns=7 * MS, collate_ns=MS)
    told = {"dataset_kind": "map", "framework": "accelerate", "dispatched": True, **config}
    process = {"world_size": world, "rank": 0}
    found = case_of(tmp_path, rows, epochs=epochs, process=process, config=told)
    if cpus is not None:
        object.__setattr__(found.system, "effective_cpus", cpus)
    return found


def test_each_rank_could_make_its_own(tmp_path: Path) -> None:
    seen = dispatched(tmp_path / "a")
    found = advice(DISPATCH, seen)
    option = "DataLoaderConfiguration(dispatch_batches=False)"
    assert option in found.code and "By hand" not in found.code
    assert str(found.evidence["fetching a batch"]) == "7.00 ms" and "by itself" not in found.why
    assert asked(seen) == [dict.fromkeys(("fetch", "collate"), pytest.approx((0.25, 0.625)))]
    few = dispatched(tmp_path / "b", cpus=0.5)  # ranks short of cores may gain nothing
    advice(DISPATCH, few)
    assert asked(few)[0]["fetch"] == (0.25, 1.0)
    trainer = dispatched(tmp_path / "c", made_by="transformers", framework="transformers")
    option = 'TrainingArguments(accelerator_config={"dispatch_batches": False})'
    assert option in advice(DISPATCH, trainer).code


def test_a_stream_must_share_itself_out(tmp_path: Path) -> None:
    found = advice(DISPATCH, dispatched(tmp_path, dataset_kind="iterable"))
    assert "chooses that by itself" in found.why and "whole stream" in (found.caveat or "")
    assert "accelerator.process_index" in found.code


test_dispatching_is_silent = silent(DISPATCH, dispatched, {"world": 1}, {"dispatched": None})


def test_the_ranks_are_not_told_that_they_read_the_same(tmp_path: Path) -> None:
    alike: Any = {"sampler": SEQUENTIAL, "dataset_len": 160, "batch_size": 4}
    for handed_out, told in ((True, 0), (None, 1)):
        seen = dispatched(tmp_path / str(told), **alike, dispatched=handed_out)
        assert len(outcomes(SAMPLER, seen)) == told


IMBALANCE = "rank-imbalance"
PEERS = ((2.0, 2.0, 16.0), (3.0, 3.0, 15.0))


def unlike(tmp_path, own=(8.0, 8.0, 10.0), peers=PEERS, config=None) -> Case:
    """(fetch, wait, compute) in ms of this rank and of the others."""
    run, world = RunBuilder(tmp_path / "ranks"), 1 + len(peers)
    for rank, times in enumerate((own, *peers)):
        rows, epochs = made(times)
        run.process(4000 + rank, world_size=world, rank=rank).loader(rows, epochs=epochs)
    processes = open_run(run.path).processes
    ranks = ranks_of([(each, summary_of(each.loaders[0])) for each in processes]) if peers else None
    rows, epochs = made(own)
    facts: Any = {"process": {"world_size": world, "rank": 0}, "config": config}
    case = case_of(tmp_path, rows, epochs=epochs, **facts)
    return replace(case, report=replace(case.report, ranks=ranks))


def made(times: tuple[float, float, float]) -> tuple[Any, Any]:
    fetch, wait, compute = times
    stages = {"fetch_ns": round(fetch * MS), "collate_ns": 0}
    return rows_of(2, 40, wait_ms=wait, compute_ms=compute, **stages)


def test_the_slow_rank_is_told(tmp_path: Path) -> None:
    seen = unlike(tmp_path)
    found = advice(IMBALANCE, seen)
    figures = shown(found, "spread", "waiting more than the others")
    assert figures == ("3.2 times", "5.50 ms per step")
    assert asked(seen)[0]["fetch"] == pytest.approx((13 / 24, (1 + 13 / 24) / 2))
    assert found.code.startswith("# By hand: sort the samples by what each costs")


# Each its own data; always the same part.
@pytest.mark.parametrize("config", [{"shuffle": True}, {"shuffle": False, "replicas": 3}])
def test_unlike_parts_may_cost_more(tmp_path: Path, config: dict[str, Any]) -> None:
    assert advice(IMBALANCE, unlike(tmp_path, config=config))


test_imbalance_is_silent = silent(
    IMBALANCE,
    unlike,
    {"peers": ()},
    {"config": {"shuffle": True, "replicas": 3}},  # dealt out at random
    {"own": (2.2, 2.2, 15.8)},  # no spread
    {"own": (2.0, 2.0, 16.0), "peers": ((8.0, 8.0, 10.0),)},  # the other one is slow
    {"own": (8.0, 0.3, 17.7), "peers": ((2.0, 0.1, 17.9),)},  # nobody waits
    {"own": (8.0, 8.0, 10.0), "peers": ((2.0, 2.0, 10.0),)},  # each at its own pace
)
