"""What a program may change in its data set while it trains: workers begun before, and kept, would not see that.

`dataset.set_epoch(epoch)`, `dataset.mosaic = False` before the last epochs, a transform's size that grows: workers that
are begun anew with each epoch have what was changed before it; the training process has it at once.
"""

from __future__ import annotations

import itertools
import types
from typing import Any

from ..profiler.guard.error_origin import forgiving
from ..profiler.guard.static_access import inherits, instance_vars, is_one_of

MOST, ITEMS, DEPTH = 2000, 64, 6
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_NO_STATE = (types.ModuleType, types.FunctionType, types.MethodType)


class Changed(Exception):
    """The program changes what makes the batches, and these workers would not see it."""


def state_of(loader: Any) -> list[Any]:
    """The attributes of a loader's data set and collate_fn, and of what these hold: plain values as they are, of all
    else which object it is. No code of theirs is run; at most `MOST` values, `ITEMS` of a list or dict. What another
    thread changes meanwhile counts as changed. Never raises."""
    found: list[Any] = []
    with forgiving(Exception):
        seen: set[int] = set()
        _add(loader.dataset, DEPTH, found, seen)
        _add(loader.collate_fn, DEPTH, found, seen)
    return found


def _add(value: Any, depth: int, found: list[Any], seen: set[int]) -> None:
    kind = type(value)
    if len(found) >= MOST:
        return
    if is_one_of(kind, _PLAIN):
        found.append(value)
        return
    found.append(id(value))
    if not depth or id(value) in seen:
        return
    seen.add(id(value))
    if is_one_of(kind, (list, tuple, dict)):
        found.append(len(value))
    for each in _inside(value, kind):
        _add(each, depth - 1, found, seen)


def _inside(value: Any, kind: type) -> list[Any]:
    import torch

    if is_one_of(kind, (list, tuple)):
        return list(value[:ITEMS])
    if kind is torch.Tensor:  # of a subclass, code of its own would answer
        return [] if value.is_inference() else [value._version]
    if is_one_of(kind, _NO_STATE) or inherits(kind, type):
        return []
    held = value if kind is dict else instance_vars(value)
    return [part for pair in itertools.islice(held.items(), ITEMS) for part in pair]
