"""Every stage measured: what `make test-torch` asks of a torch before it counts as tried."""

from __future__ import annotations

import time
import warnings
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import loaderscope

BATCHES = 12
MAKING = ("index", "fetch", "collate", "fetch_cpu", "collate_cpu")
IN_MAIN = (*MAKING, "wait", "compute", "stall", "startup")
ACROSS = ("pack", "queued", "unpack")


def add_one(value: Any) -> Any:
    return value + 1


class Data(Dataset[Any]):
    """Slow enough to be looked at in detail, with a chain of callables."""

    def __init__(self) -> None:
        self.transforms = [torch.neg, add_one]

    def __len__(self) -> int:
        return BATCHES * 4

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.0005)
        value = torch.full((16,), float(index))
        for each in self.transforms:
            value = each(value)
        return value


def stateful() -> Any:
    return pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader


@pytest.mark.parametrize(
    "context",
    ["no workers", "fork", "spawn", pytest.param("forkserver", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize(
    "kind", [lambda: DataLoader, stateful], ids=["DataLoader", "StatefulDataLoader"]
)
def test_every_stage_is_measured(kind, context, record_property):
    workers: dict[str, Any] = (
        {"num_workers": 2, "multiprocessing_context": context} if context != "no workers" else {}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torchdata's own, of a newer torch
        loader = loaderscope.watch(kind()(Data(), batch_size=4, **workers))
        seen = [batch[:, 0].tolist() for batch in loader]
    assert seen == [[1.0 - i for i in range(4 * n, 4 * n + 4)] for n in range(BATCHES)]
    report = loaderscope.report()
    (found,) = report.loaders
    record_property("stages", ",".join(name for name, stage in found.stages.items() if stage.count))
    assert report.missing == ()
    wanted = (*IN_MAIN, *ACROSS) if workers else IN_MAIN
    assert {
        name: found.stages[name].reason for name in wanted if not found.stages[name].count
    } == {}
    for name in ("index", "fetch", "collate", "wait", *(ACROSS if workers else ())):
        assert found.stages[name].count == BATCHES, name
