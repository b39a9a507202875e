"""Describes the samples of a batch before they are collated: what each field is, and whether it is
alike in all of them."""

from __future__ import annotations

from functools import reduce
from typing import Any

from ...guard.static_access import class_name, inherits, is_one_of, plain_tensor, unseen
from ...store.sampled_fetches import MAX_FIELDS, SampleField, combined_fields
from .inspect_batch import is_array, walk

MAX_SAMPLES = 16
_NUMBERS = (int, float, bool, complex)


def inspect_samples(samples: Any) -> tuple[SampleField, ...]:
    """The fields of up to MAX_SAMPLES of these, evenly spread; () for what is no list of samples.

    A field that some of them lack is "missing" in these, and so not alike.
    """
    if type(samples) is not list or not samples:
        return ()
    step = -(-len(samples) // MAX_SAMPLES)
    with unseen():
        found = [
            tuple(_field(path, value) for path, value in walk(each, MAX_FIELDS))
            or (_field("", each),)  # an empty container
            for each in samples[::step]
        ]
    return reduce(combined_fields, found)


def _field(path: str, value: Any) -> SampleField:
    kind, name = "other", class_name(type(value))[:200]
    if inherits(type(value), _tensor()):
        if plain_tensor(value):
            dtype = str(value.dtype).removeprefix("torch.")[:64]
            return SampleField(path[:200], "tensor", name, dtype, tuple(value.shape))
        kind = "tensor subclass"
    elif is_array(value):
        return SampleField(path[:200], "ndarray", name, str(value.dtype)[:64], tuple(value.shape))
    elif type(value) is str:
        kind = "text"
    elif value is None:
        kind = "none"
    elif is_one_of(type(value), _NUMBERS):
        kind = "number"
    return SampleField(path[:200], kind, name)


def _tensor() -> type:
    import torch

    return torch.Tensor
