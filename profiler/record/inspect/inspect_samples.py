"""Describes the samples of a batch before they are collated: what each field is, and whether it is
alike in all of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import reduce
from typing import Any

from ...base.clock import now_ns, thread_cpu_ns
from ...guard.static_access import class_name, in_class, unseen
from ...store.sampled_fetches import MAX_FIELDS, SampleField, combined_fields
from .inspect_batch import leaf_kind, type_name, walk

MAX_SAMPLES = 16


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
    kind = leaf_kind(value)
    known: tuple[Any, ...] = ()
    if kind in ("tensor", "ndarray"):
        known = type_name(value.dtype)[:64], tuple(value.shape)
    return SampleField(path[:200], kind, class_name(type(value))[:200], *known)


def tell_samples(fetcher: Any, told: Callable[[Any, Any], None]) -> None:
    """`told` gets the samples of this marked fetcher's next batch, before they are collated, and
    their indices.

    It is called where the fetcher looks up its `collate_fn`, so that no frame of ours is on the
    stack while the user's code runs.
    """
    cls = type(fetcher)
    if in_class(cls, "_loaderscope_timings") is None:
        return

    def collate_asked_for(fetcher: Any) -> Any:
        fetcher.__class__ = cls
        held, timings = sys._getframe(1).f_locals, fetcher._loaderscope_timings
        timings.t_fetch -= now_ns()  # what we do now is no part of fetching
        timings.t_cpu_fetch -= thread_cpu_ns()
        told(held.get("data"), held.get("possibly_batched_index"))
        timings.t_fetch += now_ns()
        timings.t_cpu_fetch += thread_cpu_ns()
        return fetcher.collate_fn

    body = {"__slots__": (), "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    telling = type(cls.__name__, (cls,), {**body, "collate_fn": property(collate_asked_for)})
    fetcher.__class__ = telling
