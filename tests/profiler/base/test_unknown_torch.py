"""A torch that calls its parts otherwise works as bare, and reports begin with what is missing."""

import importlib.util
import itertools
import types

import pytest
import torch
from click.testing import CliRunner
from torch.utils.data import DataLoader, dataloader
from torch.utils.data._utils import fetch as torch_fetch
from torch.utils.data._utils import worker as torch_worker

import loaderscope
from loaderscope.cli import cli
from loaderscope.profiler.base import torch_parts
from loaderscope.profiler.record.iterate.loader_kinds import KINDS
from loaderscope.profiler.record.transit import worker
from loaderscope.profiler.store.gaps import EVERYTHING, INSIDE_WORKERS
from loaderscope.profiler.store.run.missing_figures import missing_figures
from loaderscope.tui.panel import _said
from loaderscope.tui.snapshot import Snapshot

TODAY = f"torch {torch.__version__}"
DATA = [torch.full((2,), float(index)) for index in range(24)]
FIGURES = "index, fetch, collate, pack, queued, unpack and pin"


@pytest.fixture(autouse=True)
def known_again():
    """What was found missing here is not missing for the tests that follow."""
    yield
    for family in KINDS:
        family.gaps = {}


def renamed(loop, before, after):
    """The worker loop with another name for one of its parameters."""
    names = tuple(after if name == before else name for name in loop.__code__.co_varnames)
    code = loop.__code__.replace(co_varnames=names)
    return types.FunctionType(code, loop.__globals__, loop.__name__, loop.__defaults__)


def values(loader):
    return [float(value) for batch in loader for value in batch[:, 0]]


def record(workers, epochs=1):
    """What is recorded of a loader, and the loader."""
    loader = loaderscope.watch(DataLoader(DATA, batch_size=4, num_workers=workers), name="data")
    for _ in range(epochs):
        assert values(loader) == [float(i) for i in range(24)]
    return loaderscope.open_run("latest"), loader


def first_line(run):
    """What the text report says before the first loader, its lines joined."""
    result = CliRunner().invoke(cli, ["report", str(run.path)])
    assert result.exit_code in (0, None), result.output
    lines = [line.rstrip() for line in result.output.splitlines()]
    return " ".join(itertools.takewhile(lambda line: line and line[0] not in "●*", lines))


def test_a_worker_loop_with_another_name(monkeypatch, capfd):
    loop = renamed(torch_worker._worker_loop, "data_queue", "outgoing")
    monkeypatch.setattr(torch_worker, "_worker_loop", loop)
    record(workers=2, epochs=2)
    run, _ = record(workers=0)
    with_workers, without = run.loaders
    assert (with_workers.column("wait_ns") >= 0).all()
    assert (with_workers.column("compute_ns")[:-1] >= 0).all()
    assert not (with_workers.batches["fetch_ns"] >= 0).any()
    why = f"{TODAY} fits nothing known: its worker loop has no 'data_queue'"
    assert {with_workers.reasons[name] for name in INSIDE_WORKERS} == {why}
    assert (without.batches["fetch_ns"] >= 0).all() and "fetch" not in without.reasons
    sentence = f"{why}. Missing from these figures: {FIGURES} of loaders with workers."
    assert (missing_figures(run), first_line(run)) == ((sentence,), sentence)
    assert capfd.readouterr().err == ""  # the report says it; the workers are torch's own


@pytest.mark.parametrize("workers", [0, 2])
def test_an_iterator_without_one_of_its_parts(monkeypatch, workers):
    name = "_MultiProcessingDataLoaderIter" if workers else "_SingleProcessDataLoaderIter"
    part = "_send_idx" if workers else "_sampler_iter"
    found = torch_parts.names_used
    monkeypatch.setattr(torch_parts, "names_used", lambda *functions: found(*functions) - {part})
    run, loader = record(workers)
    assert type(iter(loader)) is getattr(dataloader, name)
    (recorded,) = run.loaders
    assert recorded.count == 0
    assert set(EVERYTHING) <= set(recorded.reasons)
    where = "loaders with workers" if workers else "loaders without workers"
    why = f"{TODAY} fits nothing known: its {name} has no {part!r}. "
    assert first_line(run) == f"{why}Missing from these figures: everything of {where}."


def broken(*args):
    raise OSError("no clock")


def otherwise(self, indices):
    return getattr(self, "collate" + "_fn")([self.dataset[i] for i in indices])


FETCHER, OTHER = torch_fetch._MapDatasetFetcher, "its _MapDatasetFetcher works in another way"


@pytest.mark.parametrize(
    ("place", "name", "change", "workers", "says"),
    [
        (FETCHER, "fetch", otherwise, 0, OTHER),
        (FETCHER, "fetch", otherwise, 1, OTHER),
        (torch_parts, "missing_of_worker", broken, 1, "OSError"),
        (worker, "_instrument", broken, 1, "not measured (their batches came without times)."),
    ],
)
def test_what_fails_or_works_in_another_way(monkeypatch, place, name, change, workers, says):
    # The worker knows no place where it could say what failed.
    monkeypatch.setenv("LOADERSCOPE_INSPECT", "0")
    monkeypatch.setattr(place, name, change)
    assert says in first_line(record(workers)[0])


def test_loaders_that_make_another_iterator(monkeypatch):
    class Threaded(dataloader._SingleProcessDataLoaderIter):
        pass

    def _get_iterator(self):
        return Threaded(self)

    _get_iterator.__module__ = dataloader.__name__
    monkeypatch.setattr(DataLoader, "_get_iterator", _get_iterator)
    run, loader = record(0)
    assert type(iter(loader)) is Threaded
    assert "its loaders make no '_SingleProcessDataLoaderIter'" in first_line(run)


def test_times_of_drawing_do_not_pile_up_where_nobody_fetches_them(monkeypatch):
    monkeypatch.setattr("loaderscope.profiler.record.iterate.iterators.MOST_DRAWN", 8)
    monkeypatch.setattr(torch_parts, "missing_of_worker", lambda kind: ("it is another",))
    iterator = iter(loaderscope.watch(DataLoader(list(range(200)), num_workers=1)))
    assert max(len(iterator._ls.drawn) for _ in iterator) < 16


def test_an_iterator_found_at_work_without_one_of_its_parts_goes_on(monkeypatch):
    running = iter(DataLoader(DATA, batch_size=4))
    next(running)
    monkeypatch.setattr(torch_parts, "missing_of_iterator", lambda cls: ("its parts are gone",))
    loaderscope.watch_all()
    assert len(values(running)) == 20


def test_a_worker_that_fails_to_measure_stands_in_every_format(monkeypatch, capfd):
    monkeypatch.setattr(worker, "_instrument", broken)
    run, _ = record(workers=2)
    why = "workers are not measured: OSError: no clock"
    assert capfd.readouterr().err.count(f"loaderscope: {why}") == 1
    sentence = first_line(run)
    assert sentence.startswith(f"{TODAY}: the workers of data were not measured (OSError: no clock")
    assert sentence.endswith(f": {FIGURES} of this loader.")
    assert run.loaders[0].reasons["fetch"] == why
    report, *pages = (
        CliRunner().invoke(cli, ["report", str(run.path), "--format", kind]).output
        for kind in ("json", "md", *(["html"] if importlib.util.find_spec("jinja2") else []))
    )
    assert loaderscope.Report.from_json(report).missing == (sentence,)
    assert pages[0].startswith("**torch ")
    for page in pages[1:]:
        told = page.index("the workers of data were not measured")
        assert 0 < told < page.index("s time goes</h3>")
    assert _said(Snapshot("id", (), "live", missing=(sentence,))) == sentence


def test_a_torch_that_was_tried_or_is_none_is_not_named():
    for version in ("2.4.1+cu121", "2.13.0+cpu", "2.15.1", None, "", "strange"):
        assert torch_parts.untried(version) is None


@pytest.mark.parametrize("version", ["2.14.1", "2.16.0.dev20261101+cu132", "3.0", "2.40"])
def test_a_report_names_a_torch_never_tried(version, monkeypatch):
    monkeypatch.setattr(torch, "__version__", version)
    run, _ = record(workers=0)
    (said,) = (note for note in loaderscope.report(run).notes if "never tried" in note)
    assert said.startswith(f"torch {version} was never tried with this Loaderscope (tried: 2.4")
