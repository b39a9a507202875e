"""Reading what was seen of a loader: complete, partial, or hostile."""

import pytest

from builders import RunBuilder, loop
from loaderscope.profiler.store.inspection import (
    MAX_ATTRIBUTES,
    MAX_CHILDREN,
    MAX_LEAVES,
    Attribute,
    Inspection,
    Leaf,
    Part,
)
from loaderscope.profiler.store.inspection import read_inspection as read
from loaderscope.profiler.store.run.run_reader import open_run


def test_everything_arrives(runs_dir):
    tensor = {"name": "x", "kind": "tensor", "type": "T", "shape": [2, 3]}
    dataset = {"type": "train.Pictures", "name": "Pictures", "file": "train.py", "line": 7}
    dataset |= {"bases": ["train.Pictures", "torch.utils.data.Dataset"], "length": 100}
    dataset |= {"getitem": ["def __getitem__(self, i):", "    return 1"], "names": ["open"]}
    dataset |= {"attributes": [tensor], "children": [{"type": "torch.Subset", "name": "Subset"}]}
    leaf = {"path": "[0]", "kind": "tensor", "dtype": "float32", "shape": [4]}
    leaves = [leaf | {"padding_share": 0.25}]
    seen = {"dataset": dataset, "structure": "list", "leaves": leaves}
    run = RunBuilder(runs_dir)
    run.process().loader(loop(3), inspection=seen)
    found = open_run(run.path).loaders[0].inspection
    part = found.dataset
    assert part is not None
    assert (part.name, part.line, part.length, part.names) == ("Pictures", 7, 100, ("open",))
    assert part.getitem == ("def __getitem__(self, i):", "    return 1")
    assert part.is_a("data.Dataset")
    assert not part.is_a("ataset")
    assert part.attribute("x") == Attribute("x", "tensor", "T", shape=(2, 3))
    assert part.attribute("y") is None
    assert part.children == (Part("torch.Subset", "Subset"),)
    assert found.leaves == (Leaf("[0]", "tensor", "float32", (4,), padding_share=0.25),)
    assert (found.structure, found.sampler) == ("list", None)


@pytest.mark.parametrize("wrong", [None, 3, "x", [], [[]], True])
def test_wrong_types_are_left_out(wrong):
    assert read({"inspection": wrong}) == Inspection()
    assert read({"inspection": {"dataset": wrong, "leaves": wrong}}).dataset is None
    dataset = {"attributes": [wrong], "children": wrong, "line": [wrong]}
    assert read({"inspection": {"dataset": dataset}}).dataset == Part("unknown", "unknown")
    leaves = [{"shape": [-1], "pinned": 1, "nbytes": True}]
    assert read({"inspection": {"leaves": leaves}}).leaves == (Leaf("", "other"),)


def test_size_is_bounded():
    raw = {"attributes": [{}] * 1000, "children": [{}] * 1000}
    part = read({"inspection": {"dataset": raw, "leaves": [{}] * 1000}})
    assert part.dataset is not None
    assert len(part.dataset.attributes) == MAX_ATTRIBUTES
    assert len(part.dataset.children) == MAX_CHILDREN
    assert len(part.leaves) == MAX_LEAVES
