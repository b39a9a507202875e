"""Looking at a loader's parts: what is found, and that nobody notices."""

from __future__ import annotations

import functools
import gc
import importlib.util
import json
import linecache
import os
import random
import subprocess
import sys
import textwrap
import time
import warnings
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    Subset,
    TensorDataset,
    default_collate,
)

import loaderscope
from loaderscope.profiler.record.inspect.inspect_loader import inspect_loader
from loaderscope.profiler.store.inspection import Inspection, read_inspection
from torch_modes import seen_by_modes


def look(loader):
    """What the reader makes of what the inspection found, after a journey through JSON."""
    return read_inspection(json.loads(json.dumps({"inspection": inspect_loader(loader)})))


def dataset_of(dataset, **kwargs):
    part = look(DataLoader(dataset, **kwargs)).dataset
    assert part is not None
    return part


def helper(path):
    return torch.tensor([float(len(path))])


class Pictures(Dataset[Any]):
    """Some of everything."""

    def __init__(self, folder):
        self.paths = [f"{folder}/{i}.png" for i in range(40)] + ["odd.txt"]
        self.samples = [(Path(f"{i}.nii.gz"), i) for i in range(30)]
        self.pixels = np.zeros((41, 3), np.uint8)
        self.turned = torch.zeros(4, 41).t()
        self.fields = {"a": torch.zeros(2, 3), "b": torch.zeros(5, dtype=torch.int64)}
        self.labels = list(range(41))
        self.words = ["a first sentence.", "another one"]
        self.transform = helper
        self.root = folder
        self.lazy = None
        self.mapped = np.memmap(folder / "map", np.float32, "w+", shape=(8, 2))

    def __len__(self):
        return 41

    def _load(self, path):
        return self.transform(path.upper())

    def __getitem__(self, index):
        # A comment of its own.
        return self._load(self.paths[index]) + 1


def test_attributes_are_named_by_kind_shape_and_size(tmp_path):
    part = dataset_of(Pictures(tmp_path))
    found = {a.name: a for a in part.attributes}
    assert {name: a.kind for name, a in found.items()} == {
        "paths": "paths",
        "samples": "paths",
        "pixels": "ndarray",
        "turned": "tensor",
        "fields": "dict",
        "labels": "numbers",
        "words": "texts",
        "transform": "callable",
        "root": "text",
        "lazy": "none",
        "mapped": "memmap",
    }
    assert (found["paths"].length, found["paths"].suffix) == (41, ".png")
    assert (found["samples"].suffix, found["samples"].items) == (".nii.gz", "tuple")
    pixels, turned = found["pixels"], found["turned"]
    assert (pixels.shape, pixels.dtype, pixels.nbytes) == ((41, 3), "uint8", 123)
    assert (turned.shape, turned.contiguous, turned.device) == ((41, 4), False, "cpu")
    assert (found["fields"].length, found["fields"].items) == (2, "torch.Tensor")
    assert found["fields"].nbytes == 2 * 3 * 4 + 5 * 8
    assert found["transform"].type.endswith("helper")
    assert part.type.endswith("Pictures") and part.is_a("dataset.Dataset")


def test_no_value_is_recorded(tmp_path):
    text = json.dumps(inspect_loader(DataLoader(Pictures(tmp_path / ".."))))
    assert "/0.png" not in text
    assert "a first sentence" not in text


def test_source_is_dedented_and_names_reach_what_the_method_calls(tmp_path):
    part = dataset_of(Pictures(tmp_path))
    assert part.getitem[0] == "def __getitem__(self, index):"
    assert part.getitem[1] == "    # A comment of its own."
    assert part.getitem[-1] == "    return self._load(self.paths[index]) + 1"
    assert {"_load", "paths", "transform", "upper"} <= set(part.names)
    assert "zeros" not in part.names  # only __init__ says so
    assert part.file == __file__
    assert Path(__file__).read_text().splitlines()[(part.line or 0) - 1].strip() == part.getitem[0]


def test_wrapped_sets_are_children():
    inner = TensorDataset(torch.zeros(5, 3), torch.zeros(5, dtype=torch.int64))
    part = dataset_of(Subset(ConcatDataset([inner, TensorDataset(torch.ones(7, 3))]), [1, 2, 3]))
    assert part.length == 3
    (concat,) = part.children
    assert concat.length == 12
    assert [child.length for child in concat.children] == [5, 7]
    held = concat.children[0].attribute("tensors")
    assert held is not None
    assert (held.items, held.nbytes, held.contiguous) == ("torch.Tensor", 5 * 3 * 4 + 5 * 8, True)
    assert part.getitem == ()  # torch's own code is no news


def test_a_cycle_and_a_long_chain_end():
    class Wrapping(Dataset[Any]):
        def __init__(self, inner):
            self.inner = inner

        def __len__(self):
            return 1

    loop = Wrapping(None)
    loop.inner = [loop]
    assert dataset_of(loop).children == ()
    chain = None
    for _ in range(50):
        chain = Wrapping(chain)
    part, depth = dataset_of(chain), 0
    while part.children:
        part, depth = part.children[0], depth + 1
    assert depth == 4


_told = []


def telling(name, answer=None):
    """A method that says when it is called."""

    def told(self, *args):
        _told.append(name)
        return answer

    return told


class Watchful(type):
    """A metaclass that counts whatever it is asked."""

    def __getattribute__(cls, name):
        if name != "__class__":
            _told.append(f"type.{name}")
        return super().__getattribute__(name)

    __eq__, __hash__ = telling("type.__eq__", False), telling("type.__hash__", 1)
    __instancecheck__ = telling("type.__instancecheck__", False)


class Touchy(metaclass=Watchful):
    """An object all of whose doors have bells."""

    def __init__(self):
        object.__setattr__(self, "hidden", [1, 2])

    def __getattribute__(self, name):
        _told.append(name)
        return object.__getattribute__(self, name)

    def __getitem__(self, index):
        _told.append("__getitem__")

    __getattr__, __repr__ = telling("__getattr__"), telling("__repr__", "")
    __len__, __iter__ = telling("__len__", 0), telling("__iter__", iter(()))
    __eq__, __hash__ = telling("__eq__", False), telling("__hash__", 1)
    __bool__ = telling("__bool__", False)
    shape, __class__ = property(telling("shape")), property(telling("__class__", Dataset))


class TouchyList(list):
    __len__, __iter__ = telling("list.__len__", 0), telling("list.__iter__", iter(()))
    __getitem__ = telling("list.__getitem__")


def test_nothing_of_the_users_runs():
    touchy = Touchy()
    loader = DataLoader([1], sampler=[0], collate_fn=default_collate)
    vars(loader)["dataset"] = touchy
    vars(loader)["sampler"] = TouchyList([touchy])
    vars(loader)["batch_sampler"] = touchy
    vars(loader)["collate_fn"] = touchy
    plain = DataLoader(Subset([touchy, TouchyList()], [0]))
    _told.clear()
    found = inspect_loader(loader)
    inside = inspect_loader(plain)
    assert _told == []
    assert [a["name"] for a in found["dataset"]["attributes"]] == ["hidden"]
    assert found["dataset"]["getitem"][0].startswith("def __getitem__")
    assert found["sampler"]["type"].endswith("TouchyList")
    assert inside["dataset"]["attributes"][0]["items"].endswith("Touchy")


def test_no_torch_mode_sees_us():
    loader = DataLoader(TensorDataset(torch.zeros(4, 3), torch.zeros(4)))
    with seen_by_modes() as seen:
        found = inspect_loader(loader)
    assert found["dataset"]["attributes"][0]["nbytes"] == 64
    assert seen == []


class Collate:
    def __call__(self, samples):
        return self.stack(samples)

    def stack(self, samples):
        return np.vstack(samples)


def start(worker, seed=0):
    torch.manual_seed(seed + worker)


def decorated(function):
    @functools.wraps(function)
    def call(*args):
        return function(*args)

    return call


@decorated
def careful(samples):
    return default_collate(samples)


def test_functions_of_every_sort():
    def seen(collate_fn):
        part = look(DataLoader([1], collate_fn=collate_fn)).collate
        assert part is not None
        return part

    alone = seen(lambda samples: torch.stack(samples, 0))
    assert (alone.name, set(alone.names)) == ("<lambda>", {"torch", "stack"})
    assert "torch.stack(samples, 0)" in alone.call[0]
    assert seen(functools.partial(start, seed=3)).call[0].startswith("def start")
    assert seen(functools.partial(start, seed=3)).type.startswith("partial(")
    assert seen(Collate()).call[0].startswith("def __call__")
    assert "vstack" in seen(Collate()).names
    assert "vstack" in seen(Collate().__call__).names
    assert seen(careful).call[:2] == ("@decorated", "def careful(samples):")
    own = seen(default_collate)
    assert (own.name, own.call, own.names) == ("default_collate", (), ())
    assert seen(max).name == "max"
    worker = look(DataLoader([1], worker_init_fn=start, num_workers=1)).worker_init
    assert worker is not None
    assert "manual_seed" in worker.names


ROWS = """
class Rows:
    def __len__(self):
        return 3
    def __getitem__(self, i):
        return torch.zeros(1)
"""


@pytest.mark.parametrize("way", ["<string>", "gone.py", "changed.py", "folder"])
def test_source_that_cannot_be_had(way, tmp_path):
    place = way if way == "<string>" else str(tmp_path / way)
    if way == "changed.py":
        Path(place).write_text("something else\n" * 20)
    elif way == "folder":
        Path(place).mkdir()
    space = {"__name__": "__main__", "torch": torch}
    exec(compile(ROWS, place, "exec"), space)
    part = dataset_of(space["Rows"]())
    assert (part.getitem, part.names, part.name) == ((), ("torch", "zeros"), "Rows")
    assert part.file == place


def test_linecache_is_left_as_it_was(tmp_path):
    before = {name: id(entry) for name, entry in linecache.cache.items()}
    assert dataset_of(Pictures(tmp_path)).getitem
    assert {name: id(entry) for name, entry in linecache.cache.items()} == before


def test_what_a_notebook_keeps_is_read():
    text = "class Cell(list):\n    def __getitem__(self, i):\n        return i\n"
    space = {"__name__": "__main__"}
    exec(compile(text, "<cell 1>", "exec"), space)
    linecache.cache["<cell 1>"] = (len(text), None, text.splitlines(keepends=True), "<cell 1>")
    try:
        assert dataset_of(space["Cell"]([1])).getitem == (
            "def __getitem__(self, i):",
            "    return i",
        )
    finally:
        del linecache.cache["<cell 1>"]


def test_long_sources_are_cut(tmp_path):
    body = "".join(f"        x{i} = '{'y' * 600}'\n" for i in range(300))
    script = tmp_path / "long.py"
    script.write_text(f"class Long(list):\n    def __getitem__(self, i):\n{body}")
    space = {"__name__": "long"}
    exec(compile(script.read_text(), str(script), "exec"), space)
    lines = dataset_of(space["Long"]([1])).getitem
    assert max(map(len, lines)) == 400
    assert 10 < len(lines) <= 200 and sum(map(len, lines)) <= 8_000


def test_many_parts_stay_bounded():
    sets = [TensorDataset(torch.zeros(1)) for _ in range(500)]
    part = look(DataLoader(ConcatDataset(sets))).dataset
    assert part is not None
    assert 50 < len(part.children) <= 64

    class Wide(Dataset[Any]):
        def __init__(self):
            for i in range(1000):
                setattr(self, f"field{i}", np.zeros(3))

        def __len__(self):
            return 1

    many = inspect_loader(DataLoader(ConcatDataset([Wide() for _ in range(100)])))
    assert sum(len(child["attributes"]) for child in many["dataset"]["children"]) <= 1024
    assert len(json.dumps(many)) < 1 << 20

    loader = DataLoader(Wide())
    began = time.process_time()
    assert len(inspect_loader(loader)["dataset"]["attributes"]) == 128
    assert time.process_time() - began < 1


def test_strangers_are_known_when_imported(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5], "c": ["x", "y", "z"]})
    part = dataset_of(Subset([0], [0]))
    assert part.attributes[0].kind == "numbers"

    class Rows(Dataset[Any]):
        def __init__(self):
            self.table = table
            self.column = table["a"]

        def __len__(self):
            return 3

    found = {a.name: a for a in dataset_of(Rows()).attributes}
    assert (found["table"].kind, found["table"].shape) == ("dataframe", (3, 3))
    assert (found["column"].kind, found["column"].dtype) == ("dataframe", "int64")
    assert (found["table"].nbytes or 0) >= 48


def _stores(folder):
    """One attribute of each kind of storage that is installed."""
    shape = {"shape": (6, 2), "chunks": (2, 2), "dtype": "f4"}
    kinds = {
        "hdf5": (
            "h5py",
            lambda it: it.File(folder / "a.h5", "w").create_dataset("x", (6, 2), "f4"),
        ),
        "arrow": ("pyarrow", lambda it: it.table({"a": [1, 2], "b": [3, 4]})),
        "lmdb": ("lmdb", lambda it: it.open(str(folder / "lmdb"))),
        "zarr": ("zarr", lambda it: it.open(str(folder / "z"), mode="w", **shape)),
    }
    return {
        kind: make(importlib.import_module(name))
        for kind, (name, make) in kinds.items()
        if importlib.util.find_spec(name)
    }


@pytest.mark.filterwarnings("ignore")
def test_storage_is_known(tmp_path):
    made = _stores(tmp_path)
    if not made:
        pytest.skip("no storage library is installed")

    class Stored(Dataset[Any]):
        def __init__(self):
            vars(self).update(made)

        def __len__(self):
            return 2

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = {a.name: a for a in dataset_of(Stored()).attributes}
    assert {name: a.kind for name, a in found.items()} == {name: name for name in made}
    shapes = {name: a.shape for name, a in found.items() if a.shape is not None}
    wanted = {"hdf5": (6, 2), "arrow": (2, 2)}
    assert shapes == {name: shape for name, shape in wanted.items() if name in made}


def test_nothing_is_imported_or_warned_or_drawn():
    program = textwrap.dedent(
        """
        import random, sys, torch
        from torch.utils.data import DataLoader, TensorDataset
        import loaderscope.profiler.record.inspect.inspect_loader as look
        import loaderscope.profiler.record.inspect.inspect_batch as batch
        loader = DataLoader(TensorDataset(torch.zeros(4, 3)), shuffle=True)
        held = torch.rand(4, 3)
        before, states = set(sys.modules), (random.getstate(), torch.get_rng_state().tolist())
        assert look.inspect_loader(loader)["dataset"]
        assert batch.inspect_batch([held])["leaves"]
        assert (random.getstate(), torch.get_rng_state().tolist()) == states
        print(sorted(set(sys.modules) - before))
        """
    )
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (result.stdout, result.stderr) == ("[]\n", "")


def recorded():
    return loaderscope.open_run("latest").loaders[0].inspection


@pytest.mark.parametrize("workers", [0, 2])
def test_a_watched_loader_is_inspected_once_it_is_used(workers, tmp_path):
    loader = loaderscope.watch(
        DataLoader(Pictures(tmp_path), batch_size=8, num_workers=workers, collate_fn=careful)
    )
    for _ in range(2):
        list(loader)
    seen = recorded()
    assert seen.dataset.attribute("paths") is not None and "_load" in seen.dataset.names
    assert (seen.collate.name, seen.structure) == ("careful", "torch.Tensor")
    assert [(leaf.path, leaf.kind, leaf.shape) for leaf in seen.leaves] == [("", "tensor", (8, 1))]


def test_inspection_can_be_turned_off(monkeypatch, tmp_path):
    monkeypatch.setenv("LOADERSCOPE_INSPECT", "0")
    list(loaderscope.watch(DataLoader(Pictures(tmp_path), batch_size=8)))
    loader = loaderscope.open_run("latest").loaders[0]
    assert loader.inspection == Inspection()
    assert "LOADERSCOPE_INSPECT" in loader.reasons["inspection"]
    assert not loader.batches.measured("digest")
    assert loader.count == 6


def test_no_part_is_kept_alive(tmp_path):
    loader = loaderscope.watch(DataLoader(Pictures(tmp_path), batch_size=8, collate_fn=Collate()))
    for batch in loader:
        del batch
    held = [weakref.ref(o) for o in (loader, loader.dataset, loader.sampler, loader.collate_fn)]
    del loader
    gc.collect()
    assert [ref() for ref in held] == [None] * 4


def test_a_failing_inspection_does_not_stop_the_recording(monkeypatch):
    from loaderscope.profiler.record.inspect import inspect_loader as module

    def fails(*_):
        raise MemoryError

    monkeypatch.setattr(module, "_identity", fails)
    list(loaderscope.watch(DataLoader(TensorDataset(torch.zeros(4)))))
    loader = loaderscope.open_run("latest").loaders[0]
    assert (loader.count, loader.inspection.dataset) == (4, None)
    assert loader.inspection.structure == "list"


def doubled(value):
    return value * 2


STOPWORDS = [f"word {i}" for i in range(40)]
FEW_WORDS = STOPWORDS[:3]


def rows():  # an attribute has its name
    return doubled([random.random()])


class Helped(Dataset[Any]):
    rows = ()

    def load(self, index):
        return doubled(index), self.rows, index in STOPWORDS, index in FEW_WORDS

    def unused(self): ...

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return self.load(index)


def test_functions_that_give_samples_are_kept_with_their_source():
    found = inspect_loader(DataLoader(Helped()))["dataset"]
    first = [lines[0] for lines in found["helpers"]]
    assert first == ["def load(self, index):", "def doubled(value):"]
    assert "rows" in found["names"] and "random" not in found["names"]
    (words,) = found["globals"]
    assert (words["name"], words["kind"], words["length"]) == ("STOPWORDS", "texts", 40)
    assert "word 7" not in json.dumps(found)
