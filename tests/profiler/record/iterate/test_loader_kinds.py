"""The kinds of loaders: which are known, and what stays torch's own."""

import pytest
import torch
from torch.utils.data import DataLoader

import loaderscope
from loaderscope.profiler.base.torch_parts import TORCH, TORCHDATA
from loaderscope.profiler.record.iterate import loader_kinds
from loaderscope.profiler.record.iterate.loader_kinds import KINDS, kind_that_makes


def test_each_kind_is_known_by_its_class_and_fits_this_torch():
    def own(self): ...

    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    for owner, kind in ((DataLoader, TORCH), (stateful, TORCHDATA)):
        found = kind_that_makes(owner, vars(owner)["_get_iterator"])
        assert found is not None and found.kind is kind and found in KINDS
        assert found.gaps == {}
    # A class of the same name elsewhere, and a `_get_iterator` of one's own, are none.
    for owner in (type("DataLoader", (), {"_get_iterator": own}), DataLoader):
        assert kind_that_makes(owner, own) is None


def test_what_cannot_be_prepared_stays_torchs_own(monkeypatch):
    monkeypatch.setattr(loader_kinds, "instrumented", lambda *args: 1 / 0)
    loader = loaderscope.watch(DataLoader([1, 2, 3, 4], batch_size=2))
    assert [batch.tolist() for batch in loader] == [[1, 2], [3, 4]]
    family = kind_that_makes(DataLoader, vars(DataLoader)["_get_iterator"])
    assert family is None or "ZeroDivisionError" in str(family.gaps["single"].missing)


def test_a_failure_of_ours_at_the_start_costs_the_loop_nothing(monkeypatch, capsys):
    monkeypatch.setattr(loader_kinds, "mark_parts", lambda *args: 1 / 0)
    for workers in (0, 1):
        loader = loaderscope.watch(DataLoader(torch.arange(8), batch_size=4, num_workers=workers))
        assert [batch.tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert "ZeroDivisionError" in capsys.readouterr().err
