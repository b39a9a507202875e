"""A class that programs take for torch's iterator."""

from __future__ import annotations

_classes: dict[type, type] = {}


def named_as(of_torch: type, ours: type) -> type:
    """Our class with the name of torch's iterator; `isinstance` says that it is one."""
    if of_torch not in _classes:
        base = next(each for each in of_torch.__mro__ if not hasattr(each, "_ls"))
        body = {
            "__module__": base.__module__,
            "__qualname__": base.__qualname__,
            "__class__": property(lambda self: base),
        }
        _classes[of_torch] = type(base.__name__, (ours,), body)
    return _classes[of_torch]
