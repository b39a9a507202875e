"""iterable-sharding: workers that all yield the whole stream."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from loaderscope.advisors.case.case import Case
from loaderscope.advisors.schema.report_model import Range
from rule_cases import advice, case_of, outcomes, ran
from rule_rows import rows_of
from silence import silent
from stack_cases import OWN, seen
from written_sets import with_method

NAME = "iterable-sharding"


class Numbers(IterableDataset[int]):
    def __init__(self) -> None:
        self.items = list(range(120))

    def __iter__(self) -> Iterator[int]:
        for item in self.items:
            yield item * 3


class Counting(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        yield from range(120)


class Source(IterableDataset[int]):
    def __init__(self, source: Any) -> None:
        self.source = source


OWN_SHARE = "worker = get_worker_info()\n"
EVERY = f"""{OWN_SHARE}for number, sample in enumerate(self.source):
    if number % worker.num_workers == worker.id:
        yield sample"""
SLICE = f"{OWN_SHARE}return islice(self.source, worker.id, None, worker.num_workers)"
SHARES = f"{OWN_SHARE}yield from self.items[worker.id :: worker.num_workers]"
# The first two divide samples that were made already.
EveryNth, Sliced, Sharded = (
    with_method(base, "__iter__(self)", body, get_worker_info=get_worker_info, islice=islice)
    for base, body in ((Source, EVERY), (Source, SLICE), (Numbers, SHARES))
)


def case(
    path, dataset=None, digests=((5, 6), (5, 6)), workers=2, batches=60, epochs=2, kind="iterable"
) -> Case:
    """`digests`: of the first two batches of each worker, in each epoch."""
    rows, told = rows_of(epochs, batches)
    for epoch in range(epochs):
        for worker, pair in enumerate(digests):
            for turn, digest in enumerate(pair):
                task = turn * len(digests) + worker
                own = {"digest": digest, "worker": worker, "task": task, "t_fetch_ns": 1}
                rows[epoch * batches + task] |= own
    loader = DataLoader(dataset or Numbers(), batch_size=4)
    config = {"num_workers": workers, "dataset_kind": kind, "batch_size": 4}
    return case_of(path, rows, epochs=told, loader=loader, config=config)


@pytest.mark.parametrize("cls", [Numbers, Counting])
def test_workers_with_the_same_batches_are_told_and_helped(tmp_path, cls):
    def drawn(loader: Any) -> list[int]:
        return sorted(torch.cat(list(loader)).tolist())

    dataset = cls()
    found = advice(NAME, case(tmp_path, dataset))
    # Each worker still makes every sample.
    assert "islice(self.source" in found.code
    assert (found.predicted.low, found.predicted.mid) == (1.0, 2.0)
    assert str(found.evidence["workers with the same first batches"]) == "2 of 2, in 2 epochs"
    before = drawn(DataLoader(dataset, batch_size=4, num_workers=2))
    loader = ran(found.code, dataset=dataset)["loader"]
    after = drawn(loader)
    assert len(before) == 2 * len(after) and after == sorted(set(before))
    assert drawn(DataLoader(loader.dataset, batch_size=4)) == after


@pytest.mark.parametrize(
    ("dataset", "late"),
    [
        (EveryNth(Numbers()), "enumerate(self.source)"),
        (Sliced(Numbers()), "self.source"),
        (EveryNth(["a.txt", "b.txt"]), None),  # what is divided is not made yet
    ],
)
def test_a_stream_that_is_divided_after_its_samples_were_made(tmp_path, dataset, late):
    found = outcomes(NAME, case(tmp_path, dataset, ((5, 6), (7, 8))))
    assert bool(found) is (late is not None)
    if late is not None:
        assert found[0].title == f"Split the stream before samples are made: {late}"
        assert found[0].kind == "speed" and "only its own" in found[0].why


DECODED = "for number, item in enumerate(self.decoded()):"
NORM = "item = int(np.linalg.norm([path]))"
MAKES = f"for number, path in enumerate(self.items):\n    {NORM}\n    {{}}\n    yield item"
# What is not this worker's share is left out after it was made; or what it is decides.
Decoded, Above, Logged, Filtered = (
    with_method(Numbers, "__iter__(self)", body, np=np)
    for body in (
        f"{DECODED}\n    if number % 2 != 1:\n        continue\n    yield item",
        MAKES.format("if number % 2:\n        continue"),
        MAKES.format("if number % 100 == 0:\n        print(number)"),
        MAKES.format("if item % 2:\n        continue"),
    )
)


def decoded(self: Any) -> Iterator[int]:
    """Makes the samples of Decoded, which are divided after it."""
    for item in self.items:
        yield int(np.linalg.norm([item]))


Decoded.decoded = decoded


@pytest.mark.parametrize(
    ("cls", "text", "late"),
    [
        (Decoded, DECODED, "enumerate(self.decoded"),
        (Above, NORM, "item = int(np.linalg"),
        (Above, "other()", None),
        (Logged, NORM, None),
        (Filtered, NORM, None),
    ],
)
def test_what_is_made_before_the_share_is_taken_counts_where_it_takes_the_time(
    tmp_path, cls, text, late
):
    made = case(tmp_path, cls(), ((5, 6), (7, 8)), workers=0)
    found = outcomes(NAME, seen(made, (f"Own.__iter__ {OWN}:41", 100), text=text))
    assert len(found) == (late is not None)
    if late is not None:
        assert found[0].title.startswith(f"Split the stream before samples are made: {late}")
        assert 0 < found[0].predicted.low <= found[0].predicted.high


test_it_is_silent_one_step_away = silent(
    NAME,
    case,
    {"digests": ((5, 6), (7, 8))},  # they differ
    {"digests": ((5, 6), (5, 8))},  # alike once
    {"dataset": Counting(), "digests": ((5, 5), (5, 5))},  # the stream repeats itself
    {"workers": 1},
    {"workers": 0},
    {"kind": "map"},
    {"digests": (), "batches": 30},  # each sample once
    {"dataset": Counting(), "digests": ()},  # nothing to tell by
    {"dataset": Sharded(), "digests": ()},  # it asks for its worker
)


@pytest.mark.parametrize(
    ("cls", "shared", "epochs", "said"),
    [
        (Counting, 3, 1, True),
        (Counting, 0, 1, False),
        (Counting, 3, 2, False),  # a file may be another worker's in the next epoch
        (Sharded, 3, 1, False),
    ],
)
def test_shards_that_several_workers_read_behind_a_shuffle_buffer(
    tmp_path, cls, shared, epochs, said
):
    found = case(tmp_path, cls(), ((5, 6), (7, 8)), epochs=epochs)
    looks = msgspec.structs.replace(found.loader.looks, shared=shared)
    found = replace(found, loader=replace(found.loader, looks=looks))
    told = outcomes(NAME, found)
    assert bool(told) is said
    if said:
        assert "3 files were read by several of the 2 workers" in told[0].why
        assert told[0].predicted == Range(1.0, 2.0, 2.0)
