"""`package.module:make_loader`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from torch.utils.data import DataLoader

from loaderscope.advisors.target import load_target
from loaderscope.profiler.errors import UsageError

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
@pytest.mark.parametrize(("name", "length"), [("make_loader", 2), ("ready", 3), ("Factory.make", 4)])
def test_a_function_or_an_object_in_the_current_folder_gives_the_loader(name: str, length: int) -> None:
    loader = load_target(f"my_training:{name}")
    assert isinstance(loader, DataLoader)
    assert len(loader) == length


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("my_training", "write MODULE:NAME"),
        (":make_loader", "write MODULE:NAME"),
        ("no_such_training:make_loader", "there is no module no_such_training"),
        ("broken_training:make_loader", "No module named 'no_such_package_at_all'"),
        ("my_training:nothing", "my_training has no nothing"),
        ("my_training:number", "gives a int, not a DataLoader"),
        ("my_training:fails", "ValueError: no such folder"),
    ],
)
def test_a_mistake_gets_one_sentence(target: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_target(target)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
