"""The stand-in is made known to torch once a process, and switched on and off."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .clocks import Clock, OwnTime, WallClock
from .engine import Engine, Spec

CALLS = 100

_module: Any = None
_kernels: Any = None


def missing() -> str | None:
    """Why there can be no stand-in with this torch; None where there can be one."""
    from torch.utils import backend_registration

    if not hasattr(backend_registration, "_setup_privateuseone_for_python_backend"):
        return f"torch {torch.__version__} has no backends in Python"
    return None


def switch_on(spec: Spec | None = None, clock: Clock | None = None) -> Any:
    """The stand-in as new, with an account of its own; gives `torch.standin`."""
    global _module, _kernels
    if _module is None:
        from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

        from .kernels import TYPE, Kernels
        from .module import Module

        module = Module()
        _setup_privateuseone_for_python_backend(TYPE, backend_module=module, hook=_hook(module))
        _module, _kernels = module, Kernels(module)
    _module.take(Engine(spec or Spec(), clock or WallClock()))
    if isinstance(clock, OwnTime):
        clock.dispatch_ns = _dispatch_ns(_module.engine)
    return _module


def _dispatch_ns(engine: Engine) -> int:
    """What torch needs, at least, to call Python that stands for a backend's function."""
    tensor, took = torch.ones(1), []

    @contextmanager
    def at_work(**options: bool) -> Iterator[None]:
        took.append(time.thread_time_ns() - began)
        yield

    working, engine.working = engine.working, at_work
    for _ in range(CALLS):
        began = time.thread_time_ns()
        tensor.is_pinned()
    engine.working = working
    return min(took)


def switch_off() -> None:
    """As if the machine had none: nothing is available, nothing initialised."""
    if _module is not None:
        _module.on = False


def _hook(module: Any) -> Any:
    class Hook(torch._C._acc.PrivateUse1Hooks):
        def is_available(self) -> bool:
            return bool(module.on)

        def is_built(self) -> bool:
            return True

        def has_primary_context(self, device: int) -> bool:
            return bool(module.is_initialized())

    return Hook()
