"""The kinds of loaders: those that are a DataLoader, and others, which `watch_all` sees. Being told of
their import leaves it as it is."""

import importlib
import sys
from types import ModuleType

import pytest
import torch
from torch.utils.data import DataLoader

import loaderscope
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.profiler.record.iterate import foreign, loader_kinds
from loaderscope.profiler.record.iterate.imports import after_import
from loaderscope.profiler.record.iterate.loader_kinds import kind_that_makes
from loaderscope.profiler.store.run.run_reader import open_run

MODULE = "fastai.data.load"


class Own:
    """As fastai's."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        yield from range(self.batches)


class Itself:
    """As DALI's: its own iterator."""

    def __init__(self):
        self.left = iter(range(3))

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.left)


@pytest.fixture
def module(monkeypatch):
    made = ModuleType(MODULE)
    for cls in (Own, Itself):
        monkeypatch.setattr(cls, "__module__", MODULE)
        setattr(made, cls.__name__, cls)
    monkeypatch.setitem(sys.modules, MODULE, made)
    monkeypatch.setattr(foreign, "KNOWN", {MODULE: ("Own", "Itself", "Missing")})
    before = Own.__iter__
    yield made
    loaderscope.unwatch()
    assert Own.__iter__ is before


def test_it_is_recorded_as_an_iterable(module, runs_dir):
    loaderscope.watch_all()
    loader = Own(5)
    for _ in range(2):
        assert list(loader) == [0, 1, 2, 3, 4]
    (told,) = open_run("latest", runs_dir).loaders
    assert (told.kind, told.name, told.config["made_by"]) == ("iterable", "Own", "fastai")
    assert (told.count, told.epochs["how"].tolist()) == (10, [1, 1])


def test_one_made_of_another_is_recorded_once(module, runs_dir):
    class Outer(Own):
        def __iter__(self):
            return iter(Own(self.batches))

    Outer.__module__, module.Missing = MODULE, Outer  # from now on, it is of the module
    loaderscope.watch_all()
    assert list(Outer(3)) == [0, 1, 2]
    assert [each.name for each in open_run("latest", runs_dir).loaders] == ["Outer"]


def test_its_own_iterator_stays_itself_and_is_named(module, runs_dir):
    loaderscope.watch_all()
    loader = Itself()
    assert iter(loader) is loader
    assert list(loader) == [0, 1, 2]
    report = build_report(open_run("latest", runs_dir))
    assert not report.loaders
    assert any("iterates over fastai's Itself" in sentence for sentence in report.missing)


def test_nobody_is_waited_for_after_the_end(monkeypatch):
    before = list(sys.meta_path)
    monkeypatch.setattr(foreign, "KNOWN", {"not_imported_yet": ("Loader",)})
    for _ in range(2):
        loaderscope.watch_all()
        assert len(sys.meta_path) > len(before)
        loaderscope.unwatch()
        assert sys.meta_path == before


def test_several_may_wait_for_one_module(tmp_path, monkeypatch):
    text = "loaded = hasattr(__spec__.loader, 'exec_module'), vars(__loader__)\n"
    (tmp_path / "awaited_by_many.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    called, finders = [], list(sys.meta_path)
    for number in range(3):
        after_import("awaited_by_many", lambda number=number: called.append(number))
    there, own = importlib.import_module("awaited_by_many").loaded
    assert sorted(called) == [0, 1, 2]
    assert there and "exec_module" not in own
    assert sys.meta_path == finders
    after_import("awaited_by_many", lambda: called.append(3))
    assert called[-1] == 3


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


def test_a_way_to_make_iterators_of_ones_own_is_of_no_known_kind():
    elsewhere = type("DataLoader", (), {"_get_iterator": lambda self: None})
    for owner in (elsewhere, DataLoader):
        assert kind_that_makes(owner, elsewhere._get_iterator) is None
