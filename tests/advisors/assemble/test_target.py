"""`package.module:make_loader`."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from torch.utils.data import DataLoader

from builders import RunBuilder, loop
from loaderscope.advisors.assemble.target import load_target, place_of
from loaderscope.profiler.base.errors import UsageError
from loaderscope.profiler.record.inspect.describe import describe_loader
from loaderscope.profiler.record.inspect.inspect_loader import inspect_loader
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.run.run_reader import open_run

MODULE = """
from torch.utils.data import DataLoader

ready = DataLoader([1, 2, 3])
number = 7

def make_loader():
    return DataLoader(range(10), batch_size=5)

def fails():
    raise ValueError("no such folder")

class Factory:
    @staticmethod
    def make():
        return DataLoader(range(4))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("my_training", "broken_training"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "my_training.py").write_text(MODULE)
    (tmp_path / "broken_training.py").write_text("import no_such_package_at_all\n")
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("name", "length"), [("make_loader", 2), ("ready", 3), ("Factory.make", 4)]
)
def test_a_function_or_an_object_in_the_current_folder_gives_the_loader(name, length):
    loader = load_target(f"my_training:{name}")
    assert isinstance(loader, DataLoader)
    assert len(loader) == length


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("my_training", "write MODULE:NAME"),
        (":make_loader", "write MODULE:NAME"),
        ("no_such_training:make_loader", "No module named 'no_such_training'"),
        ("broken_training:make_loader", "No module named 'no_such_package_at_all'"),
        ("my_training:nothing", "no attribute 'nothing'"),
        ("my_training:number", "gives a int, not a DataLoader"),
        ("my_training:fails", "ValueError: no such folder"),
    ],
)
def test_a_mistake_gets_one_sentence(target: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_target(target)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


SCRIPT = """
from torch.utils.data import BatchSampler, DataLoader, RandomSampler
from stored_sets import Sized

class Rows(Sized):
    pass

def make_loader(size=4):
    return DataLoader(Rows(), batch_sampler=BatchSampler(RandomSampler(Rows()), size, False))
"""


def imported(path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script as this file's module under this name, such as `__main__`: as if it were run."""
    path.write_text(SCRIPT)
    module = ModuleType(name)
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(SCRIPT, str(path), "exec"), vars(module))
    return module


def recorded(runs: Path, *loaders: Any) -> Run:
    run = RunBuilder(runs)
    process = run.process()
    for loader in loaders:
        process.loader(loop(30), config=describe_loader(loader), inspection=inspect_loader(loader))
    return open_run(run.path)


def test_a_class_of_the_script_is_the_one_that_is_imported(tmp_path, monkeypatch):
    script = tmp_path / "train.py"
    with monkeypatch.context() as running:
        main = imported(script, "__main__", running)
        run = recorded(tmp_path / "runs", main.make_loader(8), main.make_loader(4))
    live = imported(script, "train", monkeypatch).make_loader()
    assert [each.config["dataset"] for each in run.loaders] == ["Rows", "Rows"]
    assert place_of(run, live) == ("p4000-0", 1)  # of two, the one with the same batches
    # A class of another file is another.
    other = imported(tmp_path / "evaluate.py", "evaluate", monkeypatch).make_loader()
    with pytest.raises(UsageError, match=r"no loader over evaluate\.Rows: it has Rows"):
        place_of(run, other)
