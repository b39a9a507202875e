"""Looking at a batch: its leaves, what their values show, what its samples are before they are
collated, and that nobody notices."""

import json
from collections import OrderedDict, UserDict, namedtuple

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import loaderscope
from loaderscope.profiler.base.tolerant import fitted
from loaderscope.profiler.record.inspect.inspect_batch import inspect_batch
from loaderscope.profiler.record.inspect.inspect_samples import inspect_samples
from loaderscope.profiler.store.inspection import Inspection
from loaderscope.profiler.store.sampled_fetches import SampleField

Pair = namedtuple("Pair", "left right")


def look(batch):
    return fitted(json.loads(json.dumps(inspect_batch(batch))), Inspection)


def leaf(batch):
    (only,) = look(batch).leaves
    return only


def test_paths_reach_the_leaves():
    batch = {
        "image": torch.zeros(2, 3),
        "meta": [OrderedDict(size=1), Pair("a", np.zeros(2, np.int16))],
        "more": UserDict({"deep": (None, b"x")}),
        7: torch.zeros(1, dtype=torch.bfloat16),
    }
    seen = look(batch)
    meta, deep = "['meta']", "['more']['deep']"
    paths = ["['image']", f"{meta}[0]['size']", f"{meta}[1][0]", f"{meta}[1][1]"]
    kinds = ["tensor", "number", "text", "ndarray", "other", "other", "tensor"]
    assert seen.structure == "dict"
    assert [f.path for f in seen.leaves] == [*paths, f"{deep}[0]", f"{deep}[1]", "[7]"]
    assert [f.kind for f in seen.leaves] == kinds
    image, array, half = (seen.leaves[i] for i in (0, 3, 6))
    assert (image.dtype, image.shape, image.nbytes) == ("float32", (2, 3), 24)
    assert (image.device, image.pinned) == ("cpu", False)
    assert (array.dtype, array.shape, array.nbytes) == ("int16", (2,), 4)
    assert (half.dtype, half.whole_255ths) == ("bfloat16", None)
    for found in seen.leaves:
        eval(f"batch{found.path}", {"batch": batch})  # it is how code reaches the leaf


def test_long_and_deep_batches_are_cut():
    assert len(look(["x"] * 10_000).leaves) == 128
    nested = []
    nested.append(nested)
    assert len(look(nested).leaves) <= 1
    assert len(look([[[["x"] * 100] * 100] * 100] * 100).leaves) == 128


def pictures(kind=torch.float32):
    drawn = torch.randint(0, 256, (8, 3, 32, 32), generator=torch.Generator().manual_seed(0))
    return (drawn.double() / 255).to(kind)


@pytest.mark.parametrize("kind", [torch.float16, torch.float32, torch.float64])
def test_pictures_divided_by_255_are_known(kind):
    for batch in (pictures(kind), pictures(kind).permute(0, 2, 3, 1), pictures(kind).numpy()):
        assert leaf(batch).whole_255ths is True


@pytest.mark.parametrize(
    "values",
    [
        (pictures() - 0.45) / 0.22,
        torch.rand(8, 3, 32, 32, generator=torch.Generator().manual_seed(0)),
        (pictures() > 0.5).float(),  # a mask
        pictures() * 255,
        torch.zeros(8, 100),
        torch.full((8, 100), float("nan")),
    ],
)
def test_other_floats_are_not(values):
    assert leaf(values).whole_255ths is False
    assert leaf(torch.zeros(8, 8, dtype=torch.uint8)).whole_255ths is None


def padded(lengths, longest, filler=0):
    rows = torch.full((len(lengths), longest), filler)
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = torch.arange(100, 100 + length)
    return rows


@pytest.mark.parametrize("filler", [0, -100, 2])
def test_padding_is_the_share_of_fillers_at_the_ends(filler):
    tokens = padded([10, 5, 5, 8], 10, filler)
    mask, vectors = (tokens != filler).long(), tokens[:, :, None].expand(4, 10, 6)
    for each in (tokens, tokens.float(), mask, vectors):
        assert leaf(each).padding_share == pytest.approx(12 / 40)


def test_data_is_no_padding():
    one_hot = torch.nn.functional.one_hot(torch.arange(10), 10)
    for data in (one_hot, torch.arange(40).reshape(4, 10), torch.zeros(4, 10), pictures()):
        assert leaf(data).padding_share == 0
    for alone in (torch.zeros(10), torch.zeros(1, 10)):
        assert leaf(alone).padding_share is None


def test_a_large_batch_is_sampled():
    rows = padded([50] * 600 + [100] * 400, 100)
    assert leaf(rows).padding_share == pytest.approx(0.3, abs=0.03)
    wide = leaf(np.zeros((256, 3, 300, 300), np.float32))
    assert (wide.padding_share, wide.whole_255ths) == (None, False)


def test_a_tensor_says_of_how_much_memory_it_is_a_part():
    whole, own = torch.zeros(1000), torch.zeros(4)
    leaves = inspect_batch([whole[:10], own])["leaves"]
    assert [each["storage_bytes"] for each in leaves] == [4000, 16]


def test_the_batch_is_unchanged():
    grad = torch.rand(3, 4, requires_grad=True)
    inner = grad * 2
    version, made_by = inner._version, inner.grad_fn
    assert leaf(inner).shape == (3, 4)
    # No backward(): torch counts the devices at the first one, and the stand-in may come later.
    assert inner._version == version and inner.requires_grad and inner.grad_fn is made_by
    assert grad.grad is None
    with torch.inference_mode():
        assert leaf(torch.zeros(3, 4)).padding_share == 0
    meta, complex_ = torch.zeros(3, device="meta"), torch.zeros(3, dtype=torch.complex64)
    for strange in (torch.zeros(3, 3).to_sparse(), meta, complex_):
        assert leaf(strange).kind == "tensor"


def test_other_iterables_have_leaves_too():
    list(loaderscope.watch([torch.zeros(2)] * 3))
    seen = loaderscope.open_run("latest").loaders[0].inspection
    assert (seen.dataset, [f.kind for f in seen.leaves]) == (None, ["tensor"])


field = SampleField


def unlike(*facts):
    return SampleField(*facts, alike=False)


class Own(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        raise AssertionError("never called")


FLOATS = ("float32", (2,))
PAIR = [np.zeros((2, 2)), np.zeros((2, 2), np.float32)]
NUMBERED = [field("[0]", "number", "int"), unlike("[1]", "mixed", "")]


@pytest.mark.parametrize(
    ("samples", "fields"),
    [
        ([torch.zeros(2)] * 3, [field("", "tensor", "torch.Tensor", *FLOATS)]),
        ([torch.zeros(k) for k in range(3)], [unlike("", "tensor", "torch.Tensor", "float32")]),
        (PAIR, [unlike("", "ndarray", "numpy.ndarray", None, (2, 2))]),
        ([(1, "a"), (2, None)], NUMBERED),
        ([{"x": 1.0}, {}], [unlike("['x']", "mixed", ""), unlike("", "mixed", "")]),
        ([{}, {}], [field("", "other", "dict")]),
        ([torch.zeros(2).as_subclass(Own)], [field("", "tensor", f"{__name__}.Own", *FLOATS)]),
        ([object()], [field("", "other", "object")]),
        (torch.zeros(2, 2), []),
        (None, []),
        ([], []),
    ],
)
def test_fields_are_alike_where_all_samples_have_the_same(samples, fields):
    assert list(inspect_samples(samples)) == fields


class Ragged(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        return {"x": torch.zeros(2), "ids": np.arange(1 + index % 3), "name": str(index)}


def lengths(samples):
    assert type(samples[0]) is dict
    return torch.tensor([len(each["ids"]) for each in samples])


def test_a_recorded_loader_has_its_samples_described():
    loader = DataLoader(Ragged(), 4, num_workers=2, collate_fn=lengths)
    bare = [batch.tolist() for batch in loader]
    watched = loaderscope.watch(loader)
    found = [batch.tolist() for _ in range(2) for batch in watched]
    assert found == bare * 2
    assert list(loaderscope.open_run("latest").loaders[-1].looks.fields) == [
        field("['x']", "tensor", "torch.Tensor", *FLOATS),
        unlike("['ids']", "ndarray", "numpy.ndarray", "int64"),
        field("['name']", "text", "str"),
    ]
