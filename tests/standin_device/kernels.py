"""What the stand-in computes: the CPU does it, at once, and the engine says how long the device
takes for it.

All operators of torch arrive in one function, the backend's fallback, and run on the tensors that
are held. Those that the CPU's own code would take apart by strides (views) are named, since a
tensor of the device has none to go by.
"""

from collections import Counter
from typing import Any

import torch

from .memory import Memory
from .module import Module

TYPE = "standin"
_VIEWS = (
    *("alias", "as_strided", "detach", "diagonal", "expand", "permute", "select.int", "t", "view"),
    *("slice.Tensor", "split.Tensor", "split_with_sizes", "squeeze", "squeeze.dim", "squeeze.dims"),
    *("transpose.int", "unbind.int", "unfold", "unsqueeze", "_reshape_alias"),
)
_OTHERWISE_NAMED = {"convolution_overrideable": "convolution"}


class Kernels:
    def __init__(self, module: Module) -> None:
        self._module = module
        self._memory: Memory = module.memory
        # Address of page-locked memory: a weak reference to its storage, and the size of its block.
        self._pinned: dict[int, tuple[Any, int]] = {}
        self._cache = Counter[int]()  # free blocks by size
        self._libraries = self._registered()

    def _registered(self) -> list[torch.library.Library]:
        rest, own = torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")
        run = self._timed(self.run)
        rest.fallback(run, "PrivateUse1")
        meant = {**dict(zip(_VIEWS, _VIEWS, strict=True)), **_OTHERWISE_NAMED}
        ways = {name: _bound(run, _operator(operator)) for name, operator in meant.items()}
        ways["convolution_backward_overrideable"] = self._timed(self._convolution_backward)
        ways["empty_strided"] = self._timed(self.empty)
        for name, way in ways.items():
            own.impl(name, way, "PrivateUse1")
        for key in ("PrivateUse1", "CPU"):
            own.impl("_copy_from", self._timed(self.copy), key)
        own.impl("_pin_memory", self._timed(self.pin), "CPU")
        own.impl("is_pinned", self._timed(self.is_pinned, call=False), "CPU")
        return [rest, own]

    def _timed(self, function: Any, **options: bool) -> Any:
        """The function without what the CPU needs for it, which is not what the device does."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            with self._module.engine.working(dispatched=True, **options):
                return function(*args, **kwargs)

        return timed

    def run(self, operator: Any, *args: Any, **kwargs: Any) -> Any:
        """Any operator."""
        self._module.init()
        known: dict[int, torch.Tensor] = {}
        touched = 0

        def inside(value: Any) -> Any:
            nonlocal touched
            if isinstance(value, torch.device):
                return torch.device("cpu")
            if not isinstance(value, torch.Tensor) or value.device.type != TYPE:
                return value
            held = self._memory.held(value)
            known[id(held)] = value
            touched += held.nbytes
            return held

        named = {name: _each(inside, value) for name, value in kwargs.items()}
        result = operator(*_each(inside, args), **named)

        def outside(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            mine = known.get(id(value))
            if mine is None:
                return self._memory.wrapped(value)
            if mine.shape != value.shape:  # a result that was made empty, to be filled
                mine.data = self._memory.wrapped(value)
            return mine

        engine, stream = self._module.engine, self._module.stream_number()
        if not operator.is_view and touched:
            engine.touch(stream, touched, str(operator))
            if not isinstance(result, (torch.Tensor, tuple, list)) and result is not None:
                engine.wait(engine.reached_ns(stream), "item")
        return _each(outside, result)

    def empty(self, size: Any, stride: Any, *, dtype: Any = None, **kwargs: Any) -> torch.Tensor:
        """`empty_strided`: what copies are made into."""
        self._module.init()
        made = self._memory.wrapped(torch.empty_strided(size, stride, dtype=dtype))
        self._memory.untouched.add(made.untyped_storage()._cdata)
        return made

    def _convolution_backward(self, grad: Any, x: Any, weight: Any, *args: Any) -> Any:
        *shape, mask = args
        operator = torch.ops.aten.convolution_backward.default
        return self.run(operator, grad, x, weight, [weight.shape[0]], *shape, mask)

    def copy(self, source, target, non_blocking=False):
        """`_copy_from`: all that `to`, `cpu` and `copy_` come to."""
        self._module.init()
        if not source.numel():  # as of CUDA, the device hears nothing of it
            return target
        engine, stream = self._module.engine, self._module.stream_number()
        issued_ns = engine.clock.now_ns()
        kind, host = ("h2d", source) if source.device.type == "cpu" else ("d2h", target)
        pinned = self.is_pinned(host)
        may_lend = kind == "h2d" and (engine.spec.lend or (pinned and non_blocking))
        if may_lend and self._memory.lend(source, target):
            there = source
        else:
            held = self._memory.held
            here, there = (held(t) if t.device.type == TYPE else t for t in (source, target))
            there.copy_(here)
        if source.device.type == target.device.type:
            engine.touch(stream, 2 * there.nbytes, "copy_")
            return target
        work = engine.copy(kind, stream, there.nbytes, pinned, not non_blocking, issued_ns)
        if not non_blocking:
            engine.wait(work.end_ns, "copy")
        elif not pinned:  # through a buffer of the driver's: no synchronisation, but a wait
            engine.clock.sleep_until(work.end_ns)
        return target

    # Page-locked memory: ordinary memory that is marked.

    def pin(self, tensor: torch.Tensor, device: Any = None) -> torch.Tensor:
        """Into a block of the caching allocator's, which takes long to lock, once a block."""
        engine = self._module.engine
        if not self._module.on:
            raise RuntimeError("Cannot access accelerator device when none is available.")
        began_ns = engine.clock.now_ns()
        made = tensor.clone(memory_format=torch.contiguous_format)
        storage = made.untyped_storage()
        block = 1 << max(0, made.nbytes - 1).bit_length()
        took_us = engine.spec.pin_us + (0.0 if self._cached(block) else engine.spec.lock_us)
        self._pinned[storage.data_ptr()] = (storage._weak_ref(), block)
        took_ns = round(took_us * 1e3 + made.nbytes / engine.spec.pin_gb_s)
        engine.clock.sleep_until(began_ns + took_ns)
        return made

    def _cached(self, block: int) -> bool:
        """Takes a block of this size out of the cache, if there is one."""
        for place, (weak, _) in list(self._pinned.items()):
            if torch.UntypedStorage._expired(weak):
                self._free(place)
        found = self._cache[block] > 0
        self._cache[block] -= found
        return found

    def _free(self, place: int) -> None:
        weak, block = self._pinned.pop(place)
        torch.UntypedStorage._free_weak_ref(weak)
        self._cache[block] += 1

    def is_pinned(self, tensor: torch.Tensor, device: Any = None) -> bool:
        place = tensor.untyped_storage().data_ptr()
        if place not in self._pinned:
            return False
        if torch.UntypedStorage._expired(self._pinned[place][0]):
            self._free(place)
            return False
        return True


def _each(function: Any, value: Any) -> Any:
    """The function's answers for all that is in a list or tuple, or for the value itself."""
    if isinstance(value, (list, tuple)):
        return type(value)([_each(function, item) for item in value])
    return function(value)


def _operator(name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def _bound(run: Any, operator: Any) -> Any:
    return lambda *args, **kwargs: run(operator, *args, **kwargs)
