"""Noticing host-to-device copies: `Tensor.to`, `Tensor.copy_` and the like of `Tensor.cuda`,
wrapped while a device is timed. All ways of copying a batch come to these: a framework's function
for nested batches, a batch's own `to`.

The wrappers are attributes of `torch.Tensor`, in front of the C methods it inherits, and are
deleted again without a trace. A copy belongs to the batch whose memory it reads, in whatever
thread, or to the batch last handed over in its thread. Counted are copies of the batch's own
tensors, and of tensors derived from it of at least SMALL bytes, so that a scalar moved in the
training step does not pass for data.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import pairwise
from threading import get_ident
from typing import TYPE_CHECKING, Any, Protocol

from ...base.clock import now_ns
from ...guard.error_origin import is_ours
from ...guard.static_access import inherits, plain_tensor, unseen
from .batch_storages import storages_of
from .wrapped import as_asked, device_of, noticing

if TYPE_CHECKING:
    import torch

SMALL = 1024
# So many calls that copy nothing tell what issuing takes.
EMPTY_CALLS = 5

# Kinds of devices that copies are timed to; CUDA's covers ROCm, which torch calls by the same name.
_kinds: set[str] = set()

_by_thread: dict[int, Copied] = {}
# By a weak reference to a tensor's storage, which is the number that names it: while it is held, no
# other storage has that number, though the memory be another's by then.
_by_memory: dict[int, Copied] = {}
_memory_of: dict[int, list[int]] = {}
_methods: dict[str, Any] = {}
# By a method's name: what its calls take before the device is asked for anything.
_issuing_ns: dict[str, int] = {}

_OFTEN = {"non_blocking"}
_Copied = Callable[..., "tuple[Any, bool] | None"]


class Copied(Protocol):
    """Who is told of copies: a batch that was handed over (`device_clock.HandedOver`)."""

    def before_copy(self) -> Any:
        """The device's event from before the copy, or None."""

    def after_copy(
        self,
        start: Any,
        host_ns: int,
        nbytes: int,
        pinned: bool | None,
        blocking: bool,
        issuing_ns: int,
    ) -> None:
        """The copy was issued; such a call takes `issuing_ns` of `host_ns` before the device is
        asked for anything. `pinned` is None where the backend does not tell."""


def install(kind: str) -> None:
    """Wrap the copying methods, for copies to devices of this kind."""
    global torch
    import torch  # into this module's names, where the wrappers look for it

    if not _issuing_ns:
        _measure_issuing(kind)
    _kinds.add(kind)
    for name, copied in (("to", _to), ("copy_", _copy), (kind, _named)):
        original = getattr(torch.Tensor, name, None)
        # Somebody else's wrapper stays as it is; a backend's own method in Python calls `to`.
        if original is not None and name not in vars(torch.Tensor):
            _methods[name] = noticing(original, _noticed(name, original, copied))
            setattr(torch.Tensor, name, _methods[name])


def _measure_issuing(kind: str) -> None:
    """By calls that copy nothing: the device hears nothing of them, and nobody waits."""
    try:
        with unseen():
            empty = torch.empty(0, device="cpu")
            there = empty.to(kind, non_blocking=True)
            calls = {"to": partial(empty.to, kind), "copy_": partial(there.copy_, empty)}
            for name, call in calls.items():
                times = [now_ns()]
                for _ in range(EMPTY_CALLS):
                    call(non_blocking=True)
                    times.append(now_ns())
                _issuing_ns[name] = min(after - before for before, after in pairwise(times))
    except Exception as error:
        if not is_ours(error):
            raise
        _issuing_ns["to"] = 0  # a backend that has no empty tensors, say


def uninstall() -> None:
    """Take the wrappers away."""
    for name in list(_methods):
        del _methods[name]
        with suppress(AttributeError):
            delattr(torch.Tensor, name)
    _kinds.clear()
    _by_thread.clear()
    _by_memory.clear()
    while _memory_of:
        for place in _memory_of.popitem()[1]:
            torch.UntypedStorage._free_weak_ref(place)


def expect(batch: Copied, data: Any) -> None:
    """Copies from now on may be of this batch."""
    _by_thread[get_ident()] = batch
    if torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack():
        with unseen():
            storages: list[Any] = storages_of(data)
    else:
        storages = storages_of(data)
    places = [storage._weak_ref() for storage in storages]
    _memory_of[id(batch)] = places
    for place in places:
        _by_memory[place] = batch
    _listen(True)


def leave(batch: Copied) -> None:
    """The thread it was handed over in goes on to another; another thread may still copy it."""
    thread = get_ident()
    if _by_thread.get(thread) is batch:
        _by_thread.pop(thread, None)
    elif batch in _by_thread.values():
        for thread, other in list(_by_thread.items()):
            if other is batch:
                _by_thread.pop(thread, None)


def forget(batch: Copied) -> None:
    """Copies of it are not looked for any more."""
    leave(batch)
    for place in _memory_of.pop(id(batch), ()):
        if _by_memory.get(place) is batch:
            _by_memory.pop(place, None)
        torch.UntypedStorage._free_weak_ref(place)
    _listen(bool(_by_thread or _by_memory))


def _listen(on: bool) -> None:
    """Whether there is a batch of which copies are looked at."""
    for method in _methods.values():
        method.on = on


def _batch_of(source: torch.Tensor) -> Copied | None:
    """The batch that this is a copy of, if any."""
    if _by_memory and source.layout is torch.strided:
        batch = _by_memory.get(source.untyped_storage()._cdata)
        if batch is not None:
            return batch
    if source.numel() * source.element_size() < SMALL:
        return None
    return _by_thread.get(get_ident())


def _observable(tensor: Any) -> bool:
    """A tensor that answers by itself, outside of functorch's levels."""
    kind = type(tensor)
    known = kind is torch.Tensor or kind is torch.nn.Parameter or plain_tensor(tensor)
    return known and not torch._C._functorch.maybe_current_level()


class _Found:
    """What is known of a copy before it is made."""

    __slots__ = ("batch", "blocking", "nbytes", "pinned", "start")

    def __init__(self, batch: Copied, source: torch.Tensor, non_blocking: bool) -> None:
        self.batch = batch
        self.blocking = not non_blocking
        self.nbytes = source.numel() * source.element_size()
        self.pinned: bool | None = None
        with suppress(
            NotImplementedError, RuntimeError
        ):  # a backend that knows no page-locked memory
            self.pinned = source.is_pinned()
        self.start = batch.before_copy()


def _found(call: tuple[Any, ...], named: dict[str, Any], copied: _Copied) -> _Found | None:
    try:
        what = copied(*call, **named)
        if what is None or not what[0].is_cpu:
            return None
        batch = _batch_of(what[0])
        return None if batch is None else _Found(batch, *what)
    except Exception as error:
        if not is_ours(error):
            raise
        return None  # arguments that torch itself will refuse, say


def _noticed(name: str, original: Any, copied: _Copied) -> Callable[..., Any]:
    """What is called in the method's place, and calls it."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return original(*args, **kwargs)
        found = None
        listening = _by_thread or _by_memory
        method = as_asked(original, (*args, *kwargs.values()))
        if listening and (method is not original or torch._C._len_torch_dispatch_stack()):
            with unseen():
                found = _found(args, kwargs, copied)
        elif listening:
            found = _found(args, kwargs, copied)
        if found is None:
            return method(*args, **kwargs)
        t0 = now_ns()
        result = method(*args, **kwargs)
        took = now_ns() - t0
        try:
            issuing = _issuing_ns.get(name, _issuing_ns["to"])
            found.batch.after_copy(
                found.start, took, found.nbytes, found.pinned, found.blocking, issuing
            )
        except Exception as error:
            if not is_ours(error):
                raise
        return result

    return call


# What the arguments of the wrapped methods say: what is copied to a device, and whether without
# waiting; else None.


def _to(self: Any, *args: Any, **kwargs: Any) -> tuple[Any, bool] | None:
    if not _observable(self):
        return None
    if (
        len(args) == 1 and type(args[0]) in (str, torch.device) and kwargs.keys() <= _OFTEN
    ):  # as most people copy
        kind = args[0].partition(":")[0] if type(args[0]) is str else args[0].type
        return (self, bool(kwargs.get("non_blocking", False))) if kind in _kinds else None
    other = args[0] if args else kwargs.get("tensor")
    if other is not None and inherits(type(other), torch.Tensor):
        onto_device = device_of(other) in _kinds
        non_blocking = bool(kwargs.get("non_blocking", args[1] if len(args) > 1 else False))
    else:
        rest = {k: v for k, v in kwargs.items() if k != "copy"}
        device, _, non_blocking, _ = torch._C._nn._parse_to(*args, **rest)
        onto_device = device is not None and device.type in _kinds
    return (self, non_blocking) if onto_device else None


def _named(self: Any, *args: Any, **kwargs: Any) -> tuple[Any, bool] | None:
    """`cuda`, `xpu` and other methods named as their device."""
    if not _observable(self):
        return None
    return self, bool(kwargs.get("non_blocking", args[1] if len(args) > 1 else False))


def _copy(self: Any, src: Any, *args: Any, **kwargs: Any) -> tuple[Any, bool] | None:
    if not _observable(src) or device_of(self) not in _kinds:
        return None
    return src, bool(kwargs.get("non_blocking", args[0] if args else False))
