"""No code of the user's runs that a bare loop does not run, and `watch` raises none of the user's
errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import json, sys, collections
import torch
from torch.utils.data import DataLoader, Dataset, SequentialSampler
import loaderscope

calls = collections.Counter()

class Meta(type):
    def __getattribute__(cls, name):
        if not name.startswith("__") or name == "__getitems__":
            calls["metaclass " + name] += 1
        return super().__getattribute__(name)

class Data(Dataset, metaclass=Meta):
    def __len__(self):
        calls["len"] += 1
        return 12
    def __getitem__(self, index):
        return torch.tensor(index)
    def __getattr__(self, name):
        calls["getattr " + name] += 1
        raise AttributeError(name)

class Lazy(dict):
    def values(self):
        calls["values"] += 1
        return super().values()
    def items(self):
        calls["items"] += 1
        return super().items()
    def __iter__(self):
        calls["dict iter"] += 1
        return super().__iter__()

class Row(list):
    def __iter__(self):
        calls["list iter"] += 1
        return super().__iter__()
    def __len__(self):
        calls["list len"] += 1
        return super().__len__()

class Odd:
    @property
    def __class__(self):
        calls["class"] += 1
        return dict

class Collate:
    def __call__(self, samples):
        return Lazy(x=torch.stack(samples), row=Row([torch.zeros(2)]), odd=Odd())
    def __getattr__(self, name):
        calls["collate " + name] += 1
        raise RuntimeError("no " + name)

class Loader(DataLoader):
    @property
    def prefetch(self):
        calls["prefetch"] += 1
        raise RuntimeError

class Order:
    def __iter__(self):
        return iter(range(12))

data = Data()
loader = Loader(data, sampler=Order(), batch_size=3, collate_fn=Collate())
calls.clear()
if sys.argv[1] == "watch":
    assert loaderscope.watch(loader) is loader
elif sys.argv[1] == "all":
    loaderscope.watch_all()
for _ in range(3):
    for batch in loader:
        pass
shown = {"calls": dict(calls), "vars": None, "place": None}
iterator = iter(loader)
shown["vars"] = sorted(vars(iterator._dataset_fetcher))
shown["own"] = vars(iterator._dataset_fetcher)["collate_fn"] is loader.collate_fn
if sys.argv[1] != "bare":
    from loaderscope.profiler.record.iterate.watch import loader_place
    directory, index = loader_place(loader)
    with open(f"{directory}/loader{index}.json") as file:
        shown["place"] = json.load(file)["config"]
print(json.dumps(shown))
"""


def output_of(tmp_path: Path, code: str, *args: str) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        "LOADERSCOPE_DIR": str(tmp_path / "runs"),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        env=env,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def shown(tmp_path: Path, mode: str) -> dict[str, Any]:
    result = output_of(tmp_path, PROGRAM, mode)
    assert result.returncode == 0 and not result.stderr, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", ["watch", "all"])
def test_the_same_code_of_the_user_s_runs(tmp_path: Path, mode: str) -> None:
    bare, watched = shown(tmp_path, "bare"), shown(tmp_path, mode)
    place = watched["place"]
    assert watched["calls"] == bare["calls"]
    assert watched["vars"] == bare["vars"] and watched["own"]
    assert (place["dataset"], place["collate_fn"]) == ("Data", "Collate")
    assert place["dataset_len"] is None  # its `__len__` does more than tell a number


NO_STREAMS = """
import sys, torch
from torch.utils.data import DataLoader
import loaderscope
sys.stderr = None
{first}
from loaderscope.profiler.record.session import session
loader = loaderscope.watch(DataLoader(torch.arange(6)))
session.tell("something to say")
for _ in loader:
    pass
assert loaderscope.profiler.record.iterate.watch.loader_place(loader) is not None
print("done")
"""


@pytest.mark.parametrize(
    "first", ["", "del sys.argv", "sys.argv = [b'train.py', 3]", "sys.argv = None"]
)
def test_without_standard_error_or_arguments(tmp_path: Path, first: str) -> None:
    result = output_of(tmp_path, NO_STREAMS.format(first=first))
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr
