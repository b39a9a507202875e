"""Loaders that are no DataLoader, under `watch_all`."""

import sys
from types import ModuleType

import pytest

import loaderscope
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.profiler.record.iterate import foreign
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
        self.left = 3

    def __iter__(self):
        return self

    def __next__(self):
        if not self.left:
            raise StopIteration
        self.left -= 1
        return self.left


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


def known(module, cls):
    """From now on, this class is of the module, and everything is watched."""
    cls.__module__ = MODULE
    module.Missing = cls
    loaderscope.watch_all()


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

    known(module, Outer)
    assert list(Outer(3)) == [0, 1, 2]
    assert [each.name for each in open_run("latest", runs_dir).loaders] == ["Outer"]


def test_its_own_iterator_stays_itself_and_is_named(module, runs_dir):
    loaderscope.watch_all()
    loader = Itself()
    assert iter(loader) is loader
    assert list(loader) == [2, 1, 0]
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
