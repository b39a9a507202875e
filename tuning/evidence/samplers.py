"""Which samplers do not depend on the loop within an epoch, so that their indices may be drawn
early."""

from __future__ import annotations

import dis
import inspect
import types
from typing import Any

from ...profiler.base.torch_parts import codes
from ...profiler.guard.static_access import in_class, instance_vars, is_one_of, underlying
from . import program

_READS = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL", "LOAD_DEREF")


def _drawn_from(sampler: Any) -> tuple[type, dict[str, Any]]:
    """The class and the attributes of a sampler, inside torch's BatchSampler if it is in one."""
    from torch.utils.data import BatchSampler

    while type(sampler) is BatchSampler:
        sampler = instance_vars(sampler).get("sampler")
    return type(sampler), instance_vars(sampler)


def drawn_at_once(sampler: Any) -> bool:
    """Whether this is a sampler of torch's own that decides on all its indices when an epoch
    begins."""
    import torch.utils.data as torch_s
    from torch.utils.data.distributed import DistributedSampler

    kind, held = _drawn_from(sampler)
    if kind is torch_s.RandomSampler and held.get("replacement") and held.get("generator"):
        return False  # it draws on as it goes, from a generator that the program has
    known = (
        torch_s.SequentialSampler,
        torch_s.RandomSampler,
        torch_s.SubsetRandomSampler,
        torch_s.WeightedRandomSampler,
        DistributedSampler,
    )
    return is_one_of(kind, known) and not {"__iter__", "__len__"} & {*held}


def generator_of(sampler: Any) -> Any:
    """The generator that a sampler of torch's own was given; None for one without."""
    import torch

    found = _drawn_from(sampler)[1].get("generator")
    return found if type(found) is torch.Generator else None


def may_hear(sampler: Any, depth: int = 4) -> bool:
    """Whether the program writes what a sampler reads between two of its indices, as far as its
    source shows it."""
    function = underlying(in_class(type(sampler), "__iter__"))
    if type(function) is types.FunctionType:
        torchs = function.__module__.startswith("torch.")
        for name in _with_callees(read_between(function.__code__), sampler, function):
            # Of what torch reads, such as a batch size, many things in a program have one.
            if program.assigned(name, "sampler" if torchs else ""):
                return True
            if not torchs and program.written_in_place(name):
                return True
    inside = instance_vars(sampler).get("sampler")
    return inside is not None and depth > 0 and may_hear(inside, depth - 1)


def _with_callees(names: set[str], sampler: Any, function: types.FunctionType) -> set[str]:
    """These names, and all that methods and functions of these names read."""
    found, waiting = set(names), [*names]
    while waiting:
        name = waiting.pop()
        called = underlying(in_class(type(sampler), name))
        if type(called) is property:
            called = called.fget
        for each in (called, function.__globals__.get(name)):
            if type(each) is types.FunctionType:
                more = _names(each.__code__)
                waiting += more - found
                found |= more
    return found


def read_between(code: types.CodeType) -> set[str]:
    """The names that a generator reads after its first `yield`, or in a loop with one."""
    instructions = list(dis.get_instructions(code))
    yields = [each.offset for each in instructions if each.opname == "YIELD_VALUE"]
    if not yields or not code.co_flags & inspect.CO_GENERATOR:
        return set()
    start = yields[0]
    for each in instructions:
        back = each.opname.startswith("JUMP_BACKWARD")
        if back and any(each.argval <= at <= each.offset for at in yields):
            start = min(start, each.argval)
    read = (each for each in instructions if each.offset >= start and each.opname in _READS)
    return {each.argval for each in read}.union(*map(_names, code.co_consts))


def _names(code: Any) -> set[str]:
    """The names that code reads, and the code inside it."""
    return {name for each in codes(code) for name in (*each.co_names, *each.co_freevars)}
