"""Notices host-to-device copies: `Tensor.to`, `Tensor.copy_`, and `Tensor.cuda` and the like are
wrapped while a device is timed. All ways of copying a batch end in these.

A copy belongs to the batch whose memory it reads, in any thread, or else to the batch last handed
over in its thread. Copies of the batch's own tensors count, and of derived tensors of at least
SMALL bytes, so that a scalar moved in the training step does not count as data.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any

from ...base.clock import now_ns
from ...guard.error_origin import forgiving
from ...guard.static_access import inherits, plain_tensor, unseen
from .batch_storages import storages_of
from .wrapped import Wrapped, device_of

if TYPE_CHECKING:
    import torch

    from .handed_over import HandedOver

SMALL = 1024


# Kinds of devices that copies are timed to. CUDA's covers ROCm, which torch calls by the same name.
_kinds: set[str] = set()

_by_thread: dict[int, HandedOver] = {}
# By the number of a tensor's storage. The weak reference that we hold keeps it from being reused.
_by_memory: dict[int, HandedOver] = {}
_memory_of: dict[int, list[int]] = {}
_wrapped = Wrapped()


_Copied = Callable[..., "tuple[Any, bool] | None"]


def install(kind: str) -> None:
    """Wrap the copying methods, for copies to devices of this kind."""
    global torch
    import torch  # a global name that the wrappers use

    _kinds.add(kind)
    # A backend's own method in Python calls `to`.
    for name, copied in (("to", _to), ("copy_", _copy), (kind, _named)):
        _wrapped.wrap(name, partial(_noticed, copied), on=False)


def uninstall() -> None:
    """Remove the wrappers."""
    _wrapped.unwrap()
    _kinds.clear()
    _by_thread.clear()
    _by_memory.clear()
    while _memory_of:
        for place in _memory_of.popitem()[1]:
            torch.UntypedStorage._free_weak_ref(place)


def expect(batch: HandedOver, data: Any) -> None:
    """Copies from now on may be of this batch."""
    _by_thread[get_ident()] = batch
    with unseen():
        storages: list[Any] = storages_of(data)
    places = _memory_of[id(batch)] = [storage._weak_ref() for storage in storages]
    _by_memory.update(dict.fromkeys(places, batch))
    _wrapped.listen(True)


def leave(batch: HandedOver) -> None:
    """The loop goes on to the next batch. Another thread may still copy this one."""
    for thread, other in list(_by_thread.items()):
        if other is batch:
            _by_thread.pop(thread, None)


def forget(batch: HandedOver) -> None:
    """Stop looking for copies of this batch."""
    leave(batch)
    for place in _memory_of.pop(id(batch), ()):
        if _by_memory.get(place) is batch:
            _by_memory.pop(place, None)
        torch.UntypedStorage._free_weak_ref(place)
    _wrapped.listen(bool(_by_thread or _by_memory))


def _batch_of(source: torch.Tensor) -> HandedOver | None:
    """The batch that this is a copy of."""
    if _by_memory and source.layout is torch.strided:
        batch = _by_memory.get(source.untyped_storage()._cdata)
        if batch is not None:
            return batch
    if source.numel() * source.element_size() < SMALL:
        return None
    return _by_thread.get(get_ident())


def _observable(tensor: Any) -> bool:
    """Whether it is a plain tensor outside of functorch's levels."""
    kind = type(tensor)
    known = kind is torch.Tensor or kind is torch.nn.Parameter or plain_tensor(tensor)
    return known and not torch._C._functorch.maybe_current_level()


def _found(
    call: tuple[Any, ...], named: dict[str, Any], copied: _Copied
) -> tuple[HandedOver, int, bool | None, bool, Any] | None:
    """A copy before it is made: (its batch, bytes, whether pinned, whether blocking, its start)."""
    with forgiving():  # arguments that torch itself will refuse, say
        what = copied(*call, **named)
        if what is None or not what[0].is_cpu:
            return None
        source, non_blocking = what
        batch = _batch_of(source)
        if batch is None:
            return None
        pinned = None
        with suppress(NotImplementedError, RuntimeError):  # a backend without page-locked memory
            pinned = source.is_pinned()
        nbytes = source.numel() * source.element_size()
        return batch, nbytes, pinned, not non_blocking, batch.before_copy()
    return None


def _noticed(copied: _Copied, method: Any, args: Any, kwargs: Any) -> Any:
    """Called in the method's place, and calls it."""
    found = None
    listening = _by_thread or _by_memory
    if listening and (type(method) is partial or torch._C._len_torch_dispatch_stack()):
        with unseen():
            found = _found(args, kwargs, copied)
    elif listening:
        found = _found(args, kwargs, copied)
    if found is None:
        return method(*args, **kwargs)
    t0 = now_ns()
    result = method(*args, **kwargs)
    took = now_ns() - t0
    with forgiving():
        batch, nbytes, pinned, blocking, start = found
        batch.after_copy(start, took, nbytes, pinned, blocking)
    return result


# What the arguments of the wrapped methods mean: the tensor that is copied to a device, and whether
# without waiting; else None.


def _to(self: Any, *args: Any, **kwargs: Any) -> tuple[Any, bool] | None:
    if not _observable(self):
        return None
    other = args[0] if args else kwargs.get("tensor")
    non_blocking: Any = kwargs.get("non_blocking", args[1] if len(args) > 1 else False)
    if len(args) == 1 and type(other) in (str, torch.device) and kwargs.keys() <= {"non_blocking"}:
        kind = torch.device(args[0]).type  # as most people copy
    elif other is not None and inherits(type(other), torch.Tensor):
        kind = device_of(other)
    else:
        rest = {k: v for k, v in kwargs.items() if k != "copy"}
        device, _, non_blocking, _ = torch._C._nn._parse_to(*args, **rest)
        kind = device.type if device is not None else ""
    return (self, bool(non_blocking)) if kind in _kinds else None


def _named(self: Any, *args: Any, **kwargs: Any) -> tuple[Any, bool] | None:
    """`cuda`, `xpu` and other methods named after their device."""
    if not _observable(self):
        return None
    return self, bool(kwargs.get("non_blocking", args[1] if len(args) > 1 else False))


def _copy(self: Any, src: Any, *args: Any, **kwargs: Any) -> tuple[Any, bool] | None:
    if not _observable(src) or device_of(self) not in _kinds:
        return None
    return src, bool(kwargs.get("non_blocking", args[0] if args else False))
