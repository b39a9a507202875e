"""Which samplers hear of nothing while an epoch goes on, so that their indices may be drawn ahead
of time."""

from __future__ import annotations

import dis
import inspect
import types
from typing import Any

from ..profiler.guard.static_access import in_class, instance_vars, is_one_of, underlying
from . import program

METHODS = ("__iter__", "__len__")
_READS = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL", "LOAD_DEREF")


def drawn_at_once(sampler: Any) -> bool:
    """Whether this is a sampler of torch's own that decides on all its indices when an epoch
    begins."""
    import torch.utils.data as torch_s
    from torch.utils.data.distributed import DistributedSampler

    held = instance_vars(sampler)
    if type(sampler) is torch_s.BatchSampler:
        return drawn_at_once(held.get("sampler"))
    if (
        type(sampler) is torch_s.RandomSampler
        and held.get("replacement")
        and held.get("generator") is not None
    ):
        return False  # it draws on as it goes, from a generator that the program has
    known = (
        torch_s.SequentialSampler,
        torch_s.RandomSampler,
        torch_s.SubsetRandomSampler,
        torch_s.WeightedRandomSampler,
    )
    return is_one_of(type(sampler), (*known, DistributedSampler)) and not any(
        name in held for name in METHODS
    )


def generator_of(sampler: Any) -> Any:
    """The generator that a sampler of torch's own was given; None for one without."""
    import torch
    from torch.utils.data import BatchSampler

    held = instance_vars(sampler)
    if type(sampler) is BatchSampler:
        return generator_of(held.get("sampler"))
    found = held.get("generator")
    return found if type(found) is torch.Generator else None


def may_hear(sampler: Any, depth: int = 4) -> str | None:
    """Where the program writes what a sampler reads between two of its indices; None where that is
    not seen."""
    cls, held = type(sampler), instance_vars(sampler)
    function = underlying(in_class(cls, "__iter__"))
    if type(function) is types.FunctionType:
        torchs = function.__module__.startswith("torch.")
        for name in read_between(function.__code__):
            # Of what torch reads, such as a batch size, many things in a program have one.
            place = program.assigned(name, "sampler" if torchs else "")
            place = place or (None if torchs else program.written_in_place(name))
            if place is not None:
                return place
    inside = held.get("sampler")
    return may_hear(inside, depth - 1) if inside is not None and depth else None


def read_between(code: types.CodeType) -> set[str]:
    """The names that a generator reads once it has given something: after a first `yield`, or in a
    loop with one."""
    if not code.co_flags & inspect.CO_GENERATOR:
        return set()
    instructions = list(dis.get_instructions(code))
    yields = [each.offset for each in instructions if each.opname == "YIELD_VALUE"]
    if not yields:
        return set()
    start = yields[0]
    for each in instructions:
        if each.opname.startswith("JUMP_BACKWARD") and any(
            each.argval <= at <= each.offset for at in yields
        ):
            start = min(start, each.argval)
    inside = (each for each in code.co_consts if isinstance(each, types.CodeType))
    found = {name for each in inside for name in (*each.co_names, *each.co_freevars)}
    return found | {
        each.argval for each in instructions if each.offset >= start and each.opname in _READS
    }
