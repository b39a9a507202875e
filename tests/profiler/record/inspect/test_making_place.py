"""Where a loader was made is the user's own line; nobody can tell that it was noted."""

import inspect
import sys
import textwrap
from types import ModuleType
from typing import Any

import pytest
from torch.utils.data import DataLoader

import loaderscope
from loaderscope.profiler.base.tolerant import fitted
from loaderscope.profiler.record.inspect.making_place import making_of, note_makings
from loaderscope.profiler.store.making import MAX_LINES, Making
from loaderscope.profiler.store.run.run_reader import open_run

ROWS = list(range(8))


@pytest.fixture
def noting():
    end = note_makings()
    yield
    end()


@pytest.fixture
def package(tmp_path):
    """Makes a module of an installed package."""
    made = []

    def install(name, source):
        folder = tmp_path / "lib/site-packages" / name
        folder.mkdir(parents=True)
        file = folder / "__init__.py"
        file.write_text(textwrap.dedent(source))
        module = ModuleType(name)
        sys.modules[name] = module
        made.append(name)
        exec(compile(file.read_text(), str(file), "exec"), vars(module))
        return module

    yield install
    for name in made:
        del sys.modules[name]


def here():
    """The line that calls this."""
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return frame.f_back.f_lineno


def made(loader):
    return fitted(making_of(loader), Making)


def build(**more):
    return DataLoader(ROWS, **more)


@pytest.mark.usefixtures("noting")
def test_the_lines_that_led_to_a_loader():
    loader, line = build(batch_size=2), here()
    innermost, outer, *_ = made(loader).lines
    source, first = inspect.getsourcelines(build)
    assert (innermost.file, innermost.line, innermost.function) == (__file__, first + 1, "build")
    assert (outer.line, outer.function) == (line, "test_the_lines_that_led_to_a_loader")
    assert innermost.place == f"test_making_place.py:{first + 1}"
    if sys.version_info >= (3, 11):
        text = source[1][innermost.column : innermost.end_column]
        assert text == "DataLoader(ROWS, **more)" and innermost.end_line == innermost.line
    assert len(made(loader).lines) <= MAX_LINES
    assert (made(loader).through, made(loader).watched) == (None, False)


@pytest.mark.usefixtures("noting")
def test_a_subclass_leads_to_its_own_call():
    class Loader(DataLoader[Any]):
        def __init__(self, data):
            super().__init__(data, batch_size=2)

    loader = Loader(ROWS)
    inner, outer = made(loader).lines[:2]
    assert (inner.function, outer.function[:15]) == ("__init__", "test_a_subclass")


@pytest.mark.usefixtures("noting")
def test_frames_of_packages_are_passed_over(package):
    maker = package(
        "makers",
        """\
        from torch.utils.data import DataLoader

        def create_loader(data, size):
            return _create(data, size)

        def _create(data, size):
            return DataLoader(data, batch_size=size)
        """,
    )
    loader, line = maker.create_loader(ROWS, 2), here()
    found = made(loader)
    assert (found.lines[0].line, found.lines[0].file) == (line, __file__)
    assert (found.through, found.call, found.again) == ("makers", "create_loader", False)


@pytest.mark.usefixtures("noting")
def test_a_loader_that_a_package_makes_of_the_users(package):
    source = (
        "from torch.utils.data import DataLoader\ndef again(it): return DataLoader(it.dataset)\n"
    )
    maker = package("makers", source)

    class Rows(list[int]):
        """A data set that can be told from an equal one."""

    mine, line = DataLoader(Rows(ROWS)), here()
    DataLoader(Rows(ROWS))
    found = made(maker.again(mine))
    assert (found.lines[0].line, found.through, found.again) == (line, "makers", True)


def test_a_run_says_where_its_loaders_were_made_and_what_ran(runs_dir):
    loaderscope.watch_all()
    loader, line = build(batch_size=2), here()
    list(loader)
    later = DataLoader(ROWS)
    loaderscope.unwatch()
    assert making_of(later) is None
    run = open_run(next(runs_dir.iterdir()))
    assert run.loaders[0].made.lines[1].line == line
    report = loaderscope.report(run)
    _, first = inspect.getsourcelines(build)
    assert report.loaders[0].made_at == f"test_making_place.py:{first + 1}"
    assert f"made at test_making_place.py:{first + 1}" in " ".join(str(report).split())


def test_a_loader_that_was_made_before_says_where_it_is_watched(runs_dir):
    loader = build(batch_size=2)
    loaderscope.watch(loader)
    line = here() - 1
    list(loader)
    loaderscope.unwatch()
    run = open_run(next(runs_dir.iterdir()))
    found = run.loaders[0].made
    assert found.watched and found.lines[0].line == line
    assert loaderscope.report(run).loaders[0].made_at is None
