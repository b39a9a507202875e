"""Looking at a loader's parts: what is found, and that nobody notices."""

import functools
import gc
import importlib.util
import json
import linecache
import random
import textwrap
import time
import warnings
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Subset, TensorDataset, default_collate

import loaderscope
from loaderscope.profiler.base.tolerant import fitted
from loaderscope.profiler.record.inspect.inspect_batch import inspect_batch
from loaderscope.profiler.record.inspect.inspect_loader import inspect_loader
from loaderscope.profiler.store import inspection
from loaderscope.profiler.store.inspection import Inspection
from started import here, python
from torch_modes import seen_by_modes


def look(loader):
    """What the reader makes of what the inspection found, after a journey through JSON."""
    return fitted(json.loads(json.dumps(inspect_loader(loader))), Inspection)


def dataset_of(dataset):
    return look(DataLoader(dataset)).dataset


def compiled(source, name, file, **space):
    """This of the source, as if it had been in the file."""
    space |= {"__name__": "__main__"}
    exec(compile(source, file, "exec"), space)
    return space[name]


def helper(path):
    return torch.tensor([float(len(path))])


class Pictures(torch.utils.data.Dataset):
    """Some of everything."""

    def __init__(self, folder):
        self.paths = [f"{folder}/{i}.png" for i in range(40)] + ["odd.txt"]
        self.samples = [(Path(f"{i}.nii.gz"), i) for i in range(30)]
        self.pixels, self.turned = np.zeros((41, 3), np.uint8), torch.zeros(4, 41).t()
        self.fields = {"a": torch.zeros(2, 3), "b": torch.zeros(5, dtype=torch.int64)}
        self.labels, self.words = list(range(41)), ["a first sentence.", "another one"]
        self.transform, self.root, self.lazy = helper, folder, None
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
    kinds = {"paths": "paths", "samples": "paths", "pixels": "ndarray", "turned": "tensor"}
    kinds |= {"fields": "dict", "labels": "numbers", "words": "texts", "transform": "callable"}
    kinds |= {"root": "text", "lazy": "none", "mapped": "memmap"}
    assert {name: a.kind for name, a in found.items()} == kinds
    paths, samples, fields = found["paths"], found["samples"], found["fields"]
    assert (paths.length, paths.suffix) == (41, ".png")
    assert (samples.suffix, samples.items) == (".nii.gz", "tuple")
    pixels, turned = found["pixels"], found["turned"]
    assert (pixels.shape, pixels.dtype, pixels.nbytes) == ((41, 3), "uint8", 123)
    assert (turned.shape, turned.device) == ((41, 4), "cpu")
    assert (fields.length, fields.items) == (2, "torch.Tensor")
    assert fields.nbytes == 2 * 3 * 4 + 5 * 8
    assert found["transform"].type.endswith("helper")
    assert part.type.endswith("Pictures") and part.is_a("dataset.Dataset")
    assert not part.is_a("ataset.Dataset") and part.attribute("unknown") is None
    text = json.dumps(inspect_loader(DataLoader(Pictures(tmp_path / ".."))))
    assert "/0.png" not in text and "a first sentence" not in text  # no value is recorded


def test_source_is_dedented_and_names_reach_what_the_method_calls(tmp_path):
    before = {name: id(entry) for name, entry in linecache.cache.items()}
    part = dataset_of(Pictures(tmp_path))
    assert {name: id(entry) for name, entry in linecache.cache.items()} == before
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
    assert (concat.length, [child.length for child in concat.children]) == (12, [5, 7])
    held = concat.children[0].attribute("tensors")
    assert (held.items, held.nbytes) == ("torch.Tensor", 5 * 3 * 4 + 5 * 8)
    assert part.getitem == ()  # torch's own code is no news


class Wrapping(torch.utils.data.Dataset):
    def __init__(self, inner=None, **attributes):
        self.inner = inner
        vars(self).update(attributes)

    def __len__(self):
        return 1


def test_a_cycle_and_a_long_chain_end():
    loop = Wrapping()
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


def told(self, *args):
    _told.append(args)


class Touchy:
    """An object all of whose doors have bells."""

    def __init__(self):
        object.__setattr__(self, "hidden", [1, 2])

    def __getattribute__(self, name):
        _told.append(name)
        return object.__getattribute__(self, name)

    __getattr__ = __getitem__ = __repr__ = __len__ = __iter__ = __eq__ = __bool__ = told
    __hash__ = told
    shape, __class__ = property(told), property(told)


class TouchyList(list):
    __len__ = __iter__ = __getitem__ = told


def test_nothing_of_the_users_runs():
    touchy = Touchy()
    loader = DataLoader([1], sampler=[0])
    vars(loader)["sampler"] = TouchyList([touchy])
    vars(loader).update(dict.fromkeys(("dataset", "batch_sampler", "collate_fn"), touchy))
    plain = DataLoader(Subset([touchy, TouchyList()], [0]))
    _told.clear()
    found = inspect_loader(loader)
    inside = inspect_loader(plain)
    assert _told == []
    assert [a["name"] for a in found["dataset"]["attributes"]] == ["hidden"]
    assert found["sampler"]["type"].endswith("TouchyList")
    assert inside["dataset"]["attributes"][0]["items"].endswith("Touchy")


def test_no_torch_mode_sees_us():
    loader = DataLoader(TensorDataset(torch.zeros(4, 3), torch.zeros(4)))
    batch = [torch.zeros(4, 3, requires_grad=True), torch.zeros(4, 2, dtype=torch.bfloat16)]
    with seen_by_modes() as seen:
        found, of_batch = inspect_loader(loader), inspect_batch(batch)
    assert found["dataset"]["attributes"][0]["nbytes"] == 64
    assert of_batch["leaves"][0]["whole_255ths"] is False
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
        return look(DataLoader([1], collate_fn=collate_fn)).collate

    alone, partial = seen(lambda samples: torch.stack(samples, 0)), functools.partial(start, seed=3)
    assert (alone.name, set(alone.names)) == ("<lambda>", {"torch", "stack"})
    assert "torch.stack(samples, 0)" in alone.call[0]
    assert seen(partial).call[0].startswith("def start")
    assert seen(partial).type.startswith("partial(")
    assert seen(Collate()).call[0].startswith("def __call__")
    assert "vstack" in seen(Collate()).names and "vstack" in seen(Collate().__call__).names
    assert seen(careful).call[:2] == ("@decorated", "def careful(samples):")
    own = seen(default_collate)
    assert (own.name, own.call, own.names) == ("default_collate", (), ())
    assert seen(max).name == "max"
    worker = look(DataLoader([1], worker_init_fn=start, num_workers=1)).worker_init
    assert "manual_seed" in worker.names


ROWS = """
class Rows:
    def __len__(self):
        return 3
    def __getitem__(self, i):
        return torch.zeros(1)
"""
CELL = "class Cell(list):\n    def __getitem__(self, i):\n        return i\n"


@pytest.mark.parametrize("way", ["<string>", "gone.py", "changed.py", "folder"])
def test_source_that_cannot_be_had(way, tmp_path):
    place = way if way == "<string>" else str(tmp_path / way)
    if way == "changed.py":
        Path(place).write_text("something else\n" * 20)
    elif way == "folder":
        Path(place).mkdir()
    part = dataset_of(compiled(ROWS, "Rows", place, torch=torch)())
    assert (part.getitem, part.names, part.name) == ((), ("torch", "zeros"), "Rows")
    assert part.file == place


def test_what_a_notebook_keeps_is_read(monkeypatch):
    cell = (len(CELL), None, CELL.splitlines(keepends=True), "<cell 1>")
    monkeypatch.setitem(linecache.cache, "<cell 1>", cell)
    found = dataset_of(compiled(CELL, "Cell", "<cell 1>")([1])).getitem
    assert found == ("def __getitem__(self, i):", "    return i")


def test_long_sources_are_cut(tmp_path):
    script = tmp_path / "long.py"
    script.write_text(CELL + "".join(f"        x{i} = '{'y' * 600}'\n" for i in range(300)))
    lines = dataset_of(compiled(script.read_text(), "Cell", str(script))([1])).getitem
    assert max(map(len, lines)) == 400
    assert 10 < len(lines) <= 200 and sum(map(len, lines)) <= 8_000


def test_many_parts_stay_bounded():
    fields = {f"field{i}": np.zeros(3) for i in range(1000)}
    many = inspect_loader(DataLoader(ConcatDataset([Wrapping(**fields) for _ in range(500)])))
    children = many["dataset"]["children"]
    assert 50 < len(children) <= 64
    assert sum(len(child["attributes"]) for child in children) <= 1024
    assert len(json.dumps(many)) < 1 << 20
    began = time.process_time()
    alone = inspect_loader(DataLoader(Wrapping(**fields)))
    assert len(alone["dataset"]["attributes"]) == 128
    assert time.process_time() - began < 1


SHAPE = {"shape": (6, 2), "chunks": (2, 2), "dtype": "f4"}
COLUMNS = {"a": [1, 2, 3], "b": ["x", "y", "z"]}
# One of each kind of storage that is installed.
STORES = {
    ("hdf5", "h5py"): lambda it, path: it.File(path, "w").create_dataset("x", (6, 2), "f4"),
    ("arrow", "pyarrow"): lambda it, path: it.table({"a": [1, 2], "b": [3, 4]}),
    ("lmdb", "lmdb"): lambda it, path: it.open(path),
    ("zarr", "zarr"): lambda it, path: it.open(path, mode="w", **SHAPE),
    ("dataframe", "pandas"): lambda it, path: it.DataFrame(COLUMNS),
}


@pytest.mark.filterwarnings("ignore")
def test_storage_is_known(tmp_path):
    made = {
        kind: make(importlib.import_module(module), str(tmp_path / kind))
        for (kind, module), make in STORES.items()
        if importlib.util.find_spec(module)
    }
    if not made:
        pytest.skip("no storage library is installed")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = {a.name: a for a in dataset_of(Wrapping(None, **made)).attributes}
    del found["inner"]
    assert {name: a.kind for name, a in found.items()} == {name: name for name in made}
    shapes = {name: a.shape for name, a in found.items() if a.shape is not None}
    wanted = {"hdf5": (6, 2), "arrow": (2, 2), "dataframe": (3, 2)}
    assert shapes == {name: shape for name, shape in wanted.items() if name in made}
    if "dataframe" in made:
        assert (found["dataframe"].nbytes or 0) >= 24
        column = dataset_of(Wrapping(made["dataframe"]["a"])).attribute("inner")
        assert (column.kind, column.dtype) == ("dataframe", "int64")


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
    result = python("-W", "error", "-c", program, env=here(), check=True)
    assert (result.stdout, result.stderr) == ("[]\n", "")


@pytest.mark.parametrize("workers", [0, 2])
def test_a_watched_loader_is_inspected_once_it_is_used(workers, tmp_path):
    how = {"num_workers": workers, "collate_fn": careful}
    loader = loaderscope.watch(DataLoader(Pictures(tmp_path), batch_size=8, **how))
    for _ in range(2):
        list(loader)
    seen = loaderscope.open_run("latest").loaders[0].inspection
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
    list(loader)
    held = [weakref.ref(o) for o in (loader, loader.dataset, loader.sampler, loader.collate_fn)]
    del loader
    gc.collect()
    assert [ref() for ref in held] == [None] * 4


def test_a_failing_inspection_does_not_stop_the_recording(monkeypatch):
    module = "loaderscope.profiler.record.inspect.inspect_loader"
    monkeypatch.setattr(f"{module}._identity", lambda *_: 1 / 0)
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


class Helped(torch.utils.data.Dataset):
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


def test_what_is_read_of_an_inspection_is_bounded():
    raw = {"attributes": [{}] * 1000, "children": [{}] * 1000}
    found = fitted({"dataset": raw, "leaves": [{}] * 1000}, Inspection)
    read = (found.dataset.attributes, found.dataset.children, found.leaves)
    most = (inspection.MAX_ATTRIBUTES, inspection.MAX_CHILDREN, inspection.MAX_LEAVES)
    assert tuple(map(len, read)) == most
