"""What the samples of a batch are, before they are collated."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import loaderscope
from loaderscope.profiler.record.inspect.inspect_samples import inspect_samples
from loaderscope.profiler.store.sampled_fetches import SampleField

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


class Ragged(Dataset[Any]):
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
