"""Every stage measured: what `make test-torch` asks of a torch before it counts as tried."""

import time
import warnings
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import loaderscope

BATCHES = 12
MAKING = ("index", "fetch", "collate", "fetch_cpu", "collate_cpu", "wait")
ACROSS = ("pack", "queued", "unpack")


class Data(Dataset[Any]):
    """Slow enough to be looked at in detail."""

    def __len__(self) -> int:
        return BATCHES * 4

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.0005)
        return torch.full((16,), float(index))


def stateful() -> Any:
    return pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader


SLOWLY = pytest.param("forkserver", marks=pytest.mark.slow)
KINDS = {"DataLoader": lambda: DataLoader, "StatefulDataLoader": stateful}


@pytest.mark.parametrize("context", ["no workers", "fork", "spawn", SLOWLY])
@pytest.mark.parametrize("kind", KINDS)
def test_every_stage_is_measured(kind, context, record_property):
    alone = context == "no workers"
    workers = {} if alone else {"num_workers": 2, "multiprocessing_context": context}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torchdata's own, of a newer torch
        loader = loaderscope.watch(KINDS[kind]()(Data(), batch_size=4, **workers))
        seen = [batch[:, 0].tolist() for batch in loader]
    assert seen == [list(map(float, range(4 * n, 4 * n + 4))) for n in range(BATCHES)]
    report = loaderscope.report()
    (found,) = report.loaders
    record_property("stages", ",".join(name for name, stage in found.stages.items() if stage.count))
    assert report.missing == ()
    across = () if alone else ACROSS
    wanted = (*MAKING, "compute", "stall", "startup", *across)
    unmeasured = {name for name in wanted if not found.stages[name].count}
    assert not unmeasured, [found.stages[name].reason for name in unmeasured]
    for name in ("index", "fetch", "collate", "wait", *across):
        assert found.stages[name].count == BATCHES, name
