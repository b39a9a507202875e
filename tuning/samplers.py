"""Which samplers hear of nothing while an epoch goes on, so that their indices may be drawn ahead of time."""

from __future__ import annotations

from typing import Any

from ..profiler.guard.static_access import instance_vars, is_one_of

METHODS = ("__iter__", "__len__")


def drawn_at_once(sampler: Any) -> bool:
    """Whether this is a sampler of torch's own that decides on all its indices when an epoch begins."""
    import torch.utils.data as torch_s
    from torch.utils.data.distributed import DistributedSampler

    held = instance_vars(sampler)
    if type(sampler) is torch_s.BatchSampler:
        return drawn_at_once(held.get("sampler"))
    if type(sampler) is torch_s.RandomSampler and held.get("replacement") and held.get("generator") is not None:
        return False  # it draws on as it goes, from a generator that the program has
    known = torch_s.SequentialSampler, torch_s.RandomSampler, torch_s.SubsetRandomSampler, torch_s.WeightedRandomSampler
    return is_one_of(type(sampler), (*known, DistributedSampler)) and not any(name in held for name in METHODS)


def generator_of(sampler: Any) -> Any:
    """The generator that a sampler of torch's own was given; None for one without."""
    import torch
    from torch.utils.data import BatchSampler

    held = instance_vars(sampler)
    if type(sampler) is BatchSampler:
        return generator_of(held.get("sampler"))
    found = held.get("generator")
    return found if type(found) is torch.Generator else None
