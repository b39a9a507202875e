"""batched-getitems: where samples are only looked up, and nowhere else."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from msgspec import structs
from torch.utils.data import DataLoader, SequentialSampler, Subset, TensorDataset

from loaderscope.advisors.case.case import Case
from loaderscope.profiler.store.inspection import Leaf
from rule_cases import FakeWhatIf, advice, asked, case_of, outcomes, ran, rejection, shown
from rule_rows import US, rows_of
from silence import silent
from stack_cases import OWN, seen
from stored_sets import Sized
from written_sets import with_getitem

NAME = "batched-getitems"
N = 600


class Points(Sized):
    def __init__(self) -> None:
        super().__init__(N)
        self.x = torch.randn(N, 5)
        self.y = np.arange(N)

    def __getitem__(self, index: int) -> Any:
        return self.x[index], self.y[index]


SUMMED = with_getitem(Points, "return self.x[i].sum(), self.y[i]")()
PICTURES = with_getitem(Points, "return Path(self.paths[i]).read_bytes()", Path=Path)()
PICTURES.paths = [f"pictures/{n}.png" for n in range(N)]


class Whole(Points):
    def __getitems__(self, indices: list[int]) -> Any:
        return [self[i] for i in indices]


def case(
    tmp_path, dataset=None, sample_us=6.0, collate_us=250.0, idle=0.02, compute_ms=0.2, **options
) -> Case:
    """A loader over `dataset` whose batches of 100 take `sample_us` a sample."""
    whatif, columns = options.pop("whatif", None), options.pop("columns", {})
    loader = DataLoader(dataset or Points(), **{"batch_size": 100, "shuffle": True, **options})
    fetch, collate = round(sample_us * 100 * US), round(collate_us * US)
    told = {"fetch_ns": fetch, "fetch_cpu_ns": round(fetch * (1 - idle)), "index_ns": 20 * US}
    told |= {"collate_ns": collate, "collate_cpu_ns": collate, "samples": 100, "bytes": 2800}
    wait_ms = (fetch + collate) / 1e6 + 0.03
    rows, epochs = rows_of(wait_ms=wait_ms, compute_ms=compute_ms, **told, **columns)
    leaf = {"kind": "tensor", "dtype": "float32", "shape": [100]}
    facts: Any = {
        "config": {"dataset_len": 6000 if whatif is None else None},
        "inspection": {"structure": "list", "leaves": [{"path": f"[{n}]", **leaf} for n in (0, 1)]},
    }
    return case_of(tmp_path, rows, epochs=epochs, loader=loader, whatif=whatif, **facts)


LOOKED_UP = [Points(), TensorDataset(torch.randn(N, 5)), Subset(Points(), range(N))]


@pytest.mark.parametrize("dataset", LOOKED_UP)
def test_it_speaks_where_samples_are_looked_up_one_by_one(tmp_path: Path, dataset: Any) -> None:
    made = case(tmp_path, dataset, whatif=FakeWhatIf())
    found = advice(NAME, made)
    assert found.params == {"batch_size": None, "num_workers": 0}
    assert shown(found, "fetch a sample", "collate a batch") == ("6.00 µs", "250 µs")
    (question,) = asked(made)
    low, high = question["fetch_us"]
    assert question["num_workers"] == 0 and 1 < low < 5 < high < 30
    assert question["collate_us"][1] < 5


class Own(SequentialSampler): ...


def test_a_sampler_of_the_users_own_goes_on_drawing_as_it_does(tmp_path: Path) -> None:
    for own in (False, True):
        options = {"sampler": Own(Points()), "shuffle": False} if own else {}
        made = case(tmp_path / str(own), Points(), whatif=FakeWhatIf(), **options)
        advice(NAME, made)
        assert ("index_us" in asked(made)[0]) is not own


def test_workers_are_let_go_where_they_only_hand_over(tmp_path: Path) -> None:
    columns = {"pack_ns": 400 * US, "unpack_ns": 200 * US, "queued_ns": 0}
    columns |= {"t_fetch_ns": lambda number, t, wait: t - 10 * US, "worker_pid": 4001, "worker": 0}
    found = advice(NAME, case(tmp_path, num_workers=2, columns=columns))
    assert found.params["num_workers"] == 0
    assert "hand-over" in found.why


test_it_is_silent_one_step_away = silent(
    NAME,
    case,
    {"dataset": Whole()},  # it has __getitems__
    {"compute_ms": 5.0, "collate_us": 0.0, "sample_us": 0.01},  # waiting is not for making batches
    {"sample_us": 300.0},  # neither looked up nor decoded
    {"dataset": SUMMED, "sample_us": 60.0},  # no array lookup, and not that cheap
    {"batch_size": None, "shuffle": False},  # whole batches already
)


def test_decoding_or_reading_is_not_helped(tmp_path: Path) -> None:
    made = case(tmp_path / "a", PICTURES, sample_us=2100.0, whatif=FakeWhatIf())
    found = rejection(NAME, made)
    assert "2.10 ms" in found.why and "decoding" in found.why
    low, high = asked(made)[0]["fetch"]
    assert 0.99 < low < 1 and high == 1
    read = case(tmp_path / "b", PICTURES, sample_us=400.0, idle=0.8)
    assert "the rest is waiting" in rejection(NAME, read).why


def test_cheap_samples_that_are_more_than_looked_up_are_a_step_by_hand(tmp_path: Path) -> None:
    found = advice(NAME, case(tmp_path, SUMMED))
    assert found.title.endswith("by hand") and "# By hand: give Own a __getitem__" in found.code
    assert "6.00 µs" in found.why and "`self.x[i].sum()` is more than a lookup" in found.why
    silent(NAME, case(tmp_path / "own", SUMMED, collate_fn=stacked))


@pytest.mark.parametrize(
    ("shares", "speaks"), [((35, 35, 30), True), ((80, 10, 10), False), ((20, 20, 10), False)]
)
def test_samples_made_of_arrays_in_many_small_steps(tmp_path: Path, shares: Any, speaks: bool):
    made = case(tmp_path, SUMMED, sample_us=60.0, collate_fn=stacked)
    lines = [(f"Own.__getitem__ {OWN}:{n}", share) for n, share in enumerate(shares, 41)]
    decoded = f"{lines[0][0]} > decode site/codec/x.py:1", 100 - sum(shares)
    sampled = seen(made, *lines, *[decoded] * (decoded[1] > 0))
    assert [each.title.endswith("by hand") for each in outcomes(NAME, sampled)] == [True] * speaks


def test_a_collate_function_of_the_users_own_keeps_its_samples(tmp_path: Path) -> None:
    made = case(tmp_path, Points(), whatif=FakeWhatIf(), collate_fn=stacked)
    found = advice(NAME, made)
    assert "Points.__getitems__ = getitems" in found.code and "collate_fn=stacked" in found.code
    assert not {"collate_us", "num_workers"} & set(asked(made)[0])


def stacked(samples: Any) -> Any:
    return torch.stack([x for x, _ in samples])


class Arrow(Whole):
    """Stands in for a Hugging Face data set."""

    def with_format(self, kind: str) -> Any:
        return self


Arrow.__module__, Arrow.__qualname__ = "datasets.arrow_dataset", "Dataset"


def test_a_hugging_face_data_set_is_indexed_with_batches(tmp_path: Path) -> None:
    found = advice(NAME, case(tmp_path, Arrow(), sample_us=40.0))
    assert 'with_format("torch")' in found.code and found.params == {"batch_size": None}
    assert len(ran(found.code, dataset=Arrow())["loader"]) == 6


@pytest.mark.parametrize("leaf", [{"path": "['x'][0]"}, {"path": "['x']", "dtype": "float64"}])
def test_columns_that_are_lists_now_are_changed_by_hand(tmp_path: Path, leaf: Any) -> None:
    made = case(tmp_path, Arrow(), sample_us=40.0)
    seen = structs.replace(made.loader.inspection, leaves=(Leaf(kind="tensor", **leaf),))
    found = advice(NAME, replace(made, loader=replace(made.loader, inspection=seen)))
    assert "loader" not in ran(found.code) and 'with_format("torch")' in found.code
