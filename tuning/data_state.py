"""What a program may change in its data set while it trains: workers begun before, and kept, would not see that.

`dataset.set_epoch(epoch)`, `dataset.mosaic = False` before the last epochs, a transform's size that grows: workers that
are begun anew with each epoch have what was changed before it; the training process has it at once.
"""

from __future__ import annotations

from typing import Any

MOST, ITEMS, DEPTH = 2000, 64, 6
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Changed(Exception):
    """The program changes what makes the batches, and these workers would not see it."""


def state_of(loader: Any) -> list[Any]:
    """The attributes of a loader's data set and collate_fn, and of what these hold: plain values as they are, of all
    else which object it is. No code of theirs is run; at most `MOST` values, `ITEMS` of a list or dict."""
    found: list[Any] = []
    _add(loader.dataset, DEPTH, found, set())
    _add(loader.collate_fn, DEPTH, found, set())
    return found


def _add(value: Any, depth: int, found: list[Any], seen: set[int]) -> None:
    kind = type(value)
    if len(found) >= MOST:
        return
    if kind in _PLAIN:
        found.append(value)
        return
    found.append(id(value))
    if not depth or id(value) in seen:
        return
    seen.add(id(value))
    if kind in (list, tuple):
        found.append(len(value))
        inside = list(value[:ITEMS])
    elif kind is dict:
        found.append(len(value))
        inside = [part for pair in zip(range(ITEMS), value.items(), strict=False) for part in pair[1]]
    else:
        inside = _attributes(value)
    for each in inside:
        _add(each, depth - 1, found, seen)


def _attributes(value: Any) -> list[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        return [] if torch.is_inference(value) else [value._version]
    if isinstance(value, type):
        return []
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return []
    return [part for pair in list(held.items())[:ITEMS] for part in pair] if type(held) is dict else []
