"""The user's source: where a loader was made, which nobody can tell was noted, the loop over it, and
hashes of what a process runs."""

import hashlib
import inspect
import json
import os
import sys
import textwrap
from types import ModuleType
from typing import Any

import pytest
from torch.utils.data import DataLoader

import loaderscope
from loaderscope.profiler.base.tolerant import fitted
from loaderscope.profiler.record.inspect.inspect_source import MAX_LINES as LONG
from loaderscope.profiler.record.inspect.inspect_source import loop_at
from loaderscope.profiler.record.inspect.making_place import making_of, note_makings
from loaderscope.profiler.record.inspect.source_hashes import hashes_of_sources
from loaderscope.profiler.store.making import MAX_FILES, MAX_LINES, Making, Sources, read_sources
from loaderscope.profiler.store.run.run_reader import open_run

ROWS = list(range(8))
MAKERS = """
    from torch.utils.data import DataLoader

    def create_loader(data, size):
        return _create(data, size)

    def _create(data, size):
        return DataLoader(data, batch_size=size)

    def again(loader):
        return DataLoader(loader.dataset)
"""


@pytest.fixture
def noting():
    end = note_makings()
    yield
    end()


@pytest.fixture
def maker(tmp_path, monkeypatch):
    """A module of an installed package, whose functions make loaders."""
    file = tmp_path / "lib/site-packages/makers/__init__.py"
    file.parent.mkdir(parents=True)
    file.write_text(textwrap.dedent(MAKERS))
    module = ModuleType("makers")
    monkeypatch.setitem(sys.modules, "makers", module)
    exec(compile(file.read_text(), str(file), "exec"), vars(module))
    return module


def here():
    """The line that calls this."""
    return inspect.currentframe().f_back.f_lineno


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
def test_frames_of_packages_are_passed_over(maker):
    loader, line = maker.create_loader(ROWS, 2), here()
    found = made(loader)
    assert (found.lines[0].line, found.lines[0].file) == (line, __file__)
    assert (found.through, found.call, found.again) == ("makers", "create_loader", False)


@pytest.mark.usefixtures("noting")
def test_a_loader_that_a_package_makes_of_the_users(maker):
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


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of the user's whose attributes must not be asked for."""

    class Lazy(ModuleType):
        def __getattr__(self, name):
            raise AssertionError(f"{name} was asked for")

    (tmp_path / "mine.py").write_text("x = 1\n")
    found = Lazy("mine")
    vars(found)["__file__"] = str(tmp_path / "mine.py")
    monkeypatch.setitem(sys.modules, "mine", found)
    monkeypatch.setitem(sys.modules, "lazy", Lazy("lazy"))
    return found


def test_imported_modules_of_the_user_are_hashed_as_they_were_at_the_start(module, tmp_path):
    path = str(tmp_path / "mine.py")
    written = os.stat(path).st_mtime
    found = hashes_of_sources(written, ())
    assert found[path] == hashlib.sha256(b"x = 1\n").hexdigest()
    assert pytest.__file__ not in found and os.__file__ not in found
    assert path not in hashes_of_sources(written, found)
    os.utime(path, (written + 60, written + 60))
    assert path not in hashes_of_sources(written, ())


@pytest.mark.parametrize("gone", ["missing", "folder"])
def test_what_cannot_be_read_is_left_out(gone, module, tmp_path):
    path = tmp_path / "mine.py"
    path.unlink()
    if gone == "folder":
        path.mkdir()
    assert str(path) not in hashes_of_sources(1e12, ())


@pytest.mark.parametrize("text", ["[]", '{"files": 3}', '{"files": {"a": 1}}', "{"])
def test_damaged_files_and_those_of_too_many_are_read_as_nothing(text, tmp_path):
    (tmp_path / "sources.json").write_text(text)
    assert read_sources(tmp_path) == Sources()
    assert read_sources(tmp_path / "nowhere") == Sources()
    files = {f"/p/{number}.py": "0" for number in range(MAX_FILES + 9)}
    (tmp_path / "sources.json").write_text(json.dumps({"format": 1, "files": files}))
    assert read_sources(tmp_path) == Sources(1)


LOOP = """\
def train(loader):
    {statement}
        step(batch)

        # indented less than its `if`
        stop()
    return None
"""


class Looking:
    """Iterates once, after it has looked at the frame that begins to."""

    def __iter__(self):
        frame = sys._getframe(1)
        self.found = loop_at(frame.f_code.co_filename, frame.f_lineno)
        return iter([1])


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        (LOOP.format(statement="for batch in loader:"), 5),
        ("def train(loader):\n    return list(loader)\n", 0),
        (LOOP.format(statement="for batch in loader:" + "\n        step(batch)" * LONG), 0),
    ],
)
def test_a_loop_that_is_not_too_long_is_kept_as_it_is_written(tmp_path, source, lines):
    file, looking = tmp_path / "train.py", Looking()
    file.write_text(source)
    names = {"step": print, "stop": list}
    exec(compile(source, str(file), "exec"), names)
    names["train"](looking)
    written = [line[4:] for line in source.splitlines()[1 : 1 + lines]]
    assert list(looking.found) == written
