"""persistent-workers: epoch starts that cost time. loader-rebuilt: an iterator a step, or a loader
an epoch. worker-startup: a heavy data set is pickled to every worker."""

from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from builders import MS, T0, epoch_row
from loaderscope.advisors.case.advice import SAME
from loaderscope.advisors.case.case import Case
from loaderscope.profiler.store.inspection import Inspection
from rule_cases import (
    advice,
    arguments,
    asked,
    case_of,
    outcomes,
    ran,
    shown,
    unmeasured,
    workers_config,
)
from rule_rows import main_loop, worker_loop
from silence import silent

PERSISTENT = "persistent-workers"


def epochs_case(
    path, start_ms=600.0, batches=50, instance=0, first_index_ms=0.0, count=4, **config
) -> Case:
    lanes, epochs = [], []
    for epoch in range(count):
        times: Any = {"wait_ms": 3.0, "compute_ms": 10.0, "start_ns": T0 + epoch * 10**12}
        lanes.append(worker_loop(batches, epoch=epoch, **times))
        lanes[-1][0]["index_ns"] = round(first_index_ms * MS)
        own = {"startup_ms": start_ms, "num_workers": 2, "instance": epoch * instance}
        epochs.append(epoch_row(lanes[-1], **own))
    told = {**workers_config(2, persistent_workers=False), **config}
    return case_of(path, *lanes, config=told, epochs=epochs)


def test_fires_for_short_epochs(tmp_path: Path) -> None:
    found = advice(PERSISTENT, epochs_case(tmp_path, start_method="spawn"))
    assert found.params == {"persistent_workers": True}
    assert arguments(found.code)["persistent_workers"] == "True"
    assert shown(found, "an epoch's start", "workers") == ("600 ms", "2 by spawn")


test_persistent_workers_are_silent = silent(
    PERSISTENT,
    epochs_case,
    {"start_ms": 20.0},
    {"batches": 2000, "start_method": "spawn"},
    {"instance": 1},
    {"first_index_ms": 500.0},
    {"persistent_workers": True},
    {"num_workers": 0},
    {"count": 1},
)


REBUILT = "loader-rebuilt"


def passes(
    path, count=60, batches=1, how=-1, start_ms=30.0, instances=0, workers=2, slow_starts=0, **more
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
    config = {
        **workers_config(workers),
        "sampler": "torch.utils.data.sampler.RandomSampler",
        **more,
    }
    return case_of(path, *lanes, config=config, epochs=epochs)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_iterator_a_step(tmp_path: Path, workers: int) -> None:
    found = advice(REBUILT, passes(tmp_path / "usual", workers=workers))
    assert found.kind == "correctness" and found.predicted == SAME
    assert shown(found, "iterators", "batches per iterator") == ("60", "1")
    if not workers:  # a few slow starts change nothing
        spell = advice(REBUILT, passes(tmp_path / "spell", workers=0, slow_starts=12))
        assert spell.evidence == found.evidence
    in_order = {"sampler": "torch.utils.data.sampler.SequentialSampler"}
    ordered = advice(REBUILT, passes(tmp_path / "ordered", **in_order))
    assert "the same first samples come every time" in ordered.why


test_rebuilding_is_silent = silent(REBUILT, passes, {"count": 10}, {"batches": 8}, {"how": 1})


def test_a_loader_an_epoch(tmp_path: Path) -> None:
    an_epoch = {"count": 5, "how": 1, "instances": 1}
    case = passes(tmp_path / "a", batches=30, start_ms=800.0, **an_epoch)
    found = advice(REBUILT, case)
    assert found.kind is None and found.params == {"persistent_workers": True}
    assert asked(case) == [{"persistent_workers": True}]
    assert outcomes("persistent-workers", case) == []
    cheap = passes(tmp_path / "b", batches=300, start_ms=26.0, **an_epoch)
    assert outcomes(REBUILT, cheap) == []


def test_the_code_goes_on_where_the_data_ends(tmp_path: Path) -> None:
    space = ran(advice(REBUILT, passes(tmp_path, workers=0)).code, dataset=range(10))
    a_pass = len(space["loader"])
    batches = [space["batch"], *islice(space["batches"], 2 * a_pass - 1)]
    halves = [torch.cat(half).tolist() for half in (batches[:a_pass], batches[a_pass:])]
    assert [sorted(half) for half in halves] == [list(range(10))] * 2


STARTUP = "worker-startup"


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
    path, start_ms=6000.0, method="spawn", attributes=HEAVY, batches=100, dataset=None
) -> Case:
    rows = worker_loop(batches, wait_ms=5.0)
    part = dataset or {"type": "train.Rows", "name": "Rows", "attributes": attributes}
    epochs = [epoch_row(rows, startup_ms=start_ms, num_workers=2)]
    facts: Any = {"config": workers_config(2, start_method=method), "inspection": {"dataset": part}}
    return case_of(path, rows, epochs=epochs, **facts)


def test_fires_for_a_heavy_data_set(tmp_path: Path) -> None:
    case = started(tmp_path)
    found = advice(STARTUP, case)
    assert shown(found, "a start", "Rows.table") == ("6.00 s", "900 MB (ndarray)")
    assert asked(case) == [{"startup": (0.2, 0.8)}]
    # The code keeps what the data set holds.
    dataset = Held(table=np.arange(6.0), names=["a", "bé", ""], labels=[3, 1, 2])
    ran(found.code, dataset=dataset)
    assert dataset.table.tolist() == list(range(6))
    assert [dataset.names[i] for i in range(3)] == list(dataset.names) == ["a", "bé", ""]
    assert dataset.labels.tolist() == [3, 1, 2]
    kinds = {type(value) for value in vars(dataset.names).values()}
    assert kinds == {torch.Tensor}  # shared, not pickled


test_startup_is_silent = silent(
    STARTUP,
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
    found = advice(STARTUP, started(tmp_path, dataset={**told, "children": [inner]}))
    assert f"{code} = torch.from_numpy({code})" in found.code


def test_without_inspection_it_says_so(tmp_path: Path) -> None:
    case = started(tmp_path)
    unseen = replace(case.loader, inspection=Inspection())
    assert unmeasured(STARTUP, replace(case, loader=unseen))
