"""Noticing host-to-device copies: `Tensor.to`, `Tensor.cuda` and `Tensor.copy_`, wrapped while a device is timed.

The wrappers are attributes of `torch.Tensor`, in front of the C methods it inherits, and are deleted again without a
trace. A copy belongs to the batch last handed over in its thread, or to the batch whose memory it reads (a prefetching
thread copies for another). Counted are copies of the batch's own tensors, and of tensors derived from it of at least
SMALL bytes, so that a scalar moved in the training step does not pass for data.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import get_ident
from typing import TYPE_CHECKING, Any, Protocol

from ..base.clock import now_ns
from ..guard.error_origin import is_ours
from ..guard.static_access import inherits

if TYPE_CHECKING:
    import torch

SMALL = 1024
# A longer list is no batch of tensors.
MAX_ITEMS = 1024

# Device types that copies are timed to; CUDA's covers ROCm, which torch calls by the same name.
device_types = {"cuda"}

_by_thread: dict[int, CopyClock] = {}
_by_memory: dict[int, CopyClock] = {}
_memory_of: dict[int, list[int]] = {}
_originals: dict[str, Any] = {}


class CopyClock(Protocol):
    """Who is told of copies (`device_clock.DeviceClock`)."""

    def before_copy(self) -> Any:
        """The device's event from before the copy, or None."""

    def after_copy(self, start: Any, host_ns: int, nbytes: int, pinned: bool, blocking: bool) -> None:
        """The copy was issued."""


def install() -> None:
    """Wrap the copying methods; does nothing where they are wrapped already."""
    global torch
    import torch  # into this module's names, where the wrappers look for it

    if _originals:
        return
    for name, wrap in (("to", _wrap_to), ("cuda", _wrap_cuda), ("copy_", _wrap_copy)):
        if name not in vars(torch.Tensor):  # somebody else's wrapper stays as it is
            original = getattr(torch.Tensor, name)
            _originals[name] = original
            setattr(torch.Tensor, name, wrap(original))


def uninstall() -> None:
    """Take the wrappers away."""
    for name in list(_originals):
        del _originals[name]
        with suppress(AttributeError):
            delattr(torch.Tensor, name)
    _by_thread.clear()
    _by_memory.clear()
    _memory_of.clear()


def expect(clock: CopyClock, batch: Any) -> None:
    """Copies from now on may be of this batch."""
    _by_thread[get_ident()] = clock
    _drop_memory(clock)
    places = [t.untyped_storage().data_ptr() for t in _tensors(batch)]
    _memory_of[id(clock)] = places
    for place in places:
        _by_memory[place] = clock


def forget(clock: CopyClock) -> None:
    """No batch of this clock is being used any more."""
    _drop_memory(clock)
    for thread, other in list(_by_thread.items()):
        if other is clock:
            _by_thread.pop(thread, None)


def _drop_memory(clock: CopyClock) -> None:
    for place in _memory_of.pop(id(clock), ()):
        if _by_memory.get(place) is clock:
            _by_memory.pop(place, None)


def _tensors(batch: Any, depth: int = 6) -> list[torch.Tensor]:
    """Those in containers, which are opened by their base class's own methods: no code of the user's runs."""
    kind = type(batch)
    if kind is torch.Tensor:
        return [batch] if batch.layout is torch.strided else []
    if not depth:
        return []
    for base, items in ((dict, dict.values), (list, list.__iter__), (tuple, tuple.__iter__)):
        if inherits(kind, base):
            if base is not dict and base.__len__(batch) > MAX_ITEMS:
                return []
            return [tensor for item in items(batch) for tensor in _tensors(item, depth - 1)]
    return []


def _clock_for(source: torch.Tensor) -> CopyClock | None:
    """The clock this copy belongs to, if any."""
    if _by_memory and source.layout is torch.strided:
        clock = _by_memory.get(source.untyped_storage().data_ptr())
        if clock is not None:
            return clock
    if source.numel() * source.element_size() < SMALL:
        return None
    return _by_thread.get(get_ident())


def _observable(tensor: Any) -> bool:
    """A plain CPU tensor, outside of any tracing: under a compiler these wrappers must be invisible."""
    return bool(
        (_by_thread or _by_memory)
        and type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and tensor.is_cpu
        and not torch.compiler.is_compiling()
        and not torch._C._functorch.maybe_current_level()
    )


def _timed(call: Callable[[], Any], source: torch.Tensor, non_blocking: bool) -> Any:
    clock = start = None
    pinned = False
    try:
        clock = _clock_for(source)
        if clock is not None:
            pinned = source.is_pinned()
            start = clock.before_copy()
    except Exception as error:
        if not is_ours(error):
            raise
        clock = None
    t0 = now_ns()
    result = call()
    if clock is not None:
        took = now_ns() - t0
        try:
            nbytes = source.numel() * source.element_size()
            clock.after_copy(start, took, nbytes, pinned, not non_blocking)
        except Exception as error:
            if not is_ours(error):
                raise
    return result


def _wrap_to(original: Any) -> Any:
    parse = torch._C._nn._parse_to

    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling() or not _observable(self):
            return original(self, *args, **kwargs)
        try:
            other = args[0] if args else kwargs.get("tensor")
            if other is not None and inherits(type(other), torch.Tensor):
                onto_device = other.device.type in device_types
                non_blocking = bool(kwargs.get("non_blocking", args[1] if len(args) > 1 else False))
            else:
                rest = {k: v for k, v in kwargs.items() if k != "copy"}
                device, _, non_blocking, _ = parse(*args, **rest)
                onto_device = device is not None and device.type in device_types
        except Exception as error:
            if not is_ours(error):
                raise
            onto_device = non_blocking = False
        if not onto_device:
            return original(self, *args, **kwargs)
        return _timed(lambda: original(self, *args, **kwargs), self, non_blocking)

    return _dressed(to, original)


def _wrap_cuda(original: Any) -> Any:
    def cuda(self: Any, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling() or not _observable(self):
            return original(self, *args, **kwargs)
        non_blocking = bool(kwargs.get("non_blocking", args[1] if len(args) > 1 else False))
        return _timed(lambda: original(self, *args, **kwargs), self, non_blocking)

    return _dressed(cuda, original)


def _wrap_copy(original: Any) -> Any:
    def copy_(self: Any, src: Any, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling() or self.device.type not in device_types or not _observable(src):
            return original(self, src, *args, **kwargs)
        non_blocking = bool(kwargs.get("non_blocking", args[0] if args else False))
        return _timed(lambda: original(self, src, *args, **kwargs), src, non_blocking)

    return _dressed(copy_, original)


def _dressed(function: Any, original: Any) -> Any:
    function.__name__ = original.__name__
    function.__doc__ = original.__doc__
    function.__wrapped__ = original
    return function
