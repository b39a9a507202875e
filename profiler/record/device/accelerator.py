"""Which device this process uses, and what its backend offers: CUDA, ROCm, XPU, MPS, NPU, HPU,
whatever torch can have.

Everything is looked up by feature. Nothing here sets a device up: what the program has not
initialised is not asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Event(Protocol):
    """A moment in a stream of the device."""

    def record(self) -> None: ...

    def query(self) -> bool: ...

    def elapsed_time(self, end: Any) -> float: ...


class Accelerator:
    """One kind of device, and the module of torch that speaks for it."""

    def __init__(self, kind: str, module: Any) -> None:
        """`module` is `torch.cuda`, or something of the same shape."""
        import torch

        self.kind = kind
        self._module = module
        general = getattr(torch, "accelerator", None)
        index = getattr(module, "current_device", None) or getattr(
            general, "current_device_index", None
        )
        self.current_device: Callable[[], int] = index or (lambda: 0)
        self.capturing: Callable[[], bool] = getattr(
            module, "is_current_stream_capturing", None
        ) or (lambda: False)
        # The current stream, None where the backend does not tell.
        self.stream: Callable[[], Any] | None = getattr(module, "current_stream", None)
        self._event: Callable[..., Event] | None = getattr(module, "Event", None)
        if self._event is None and hasattr(torch, "Event") and general is not None:
            self._event = lambda enable_timing: torch.Event(kind, enable_timing=enable_timing)
        self.lacks = None if self._event is not None else f"torch.{kind} has no events"

    def event(self) -> Event:
        """A new one that carries times; only where nothing `lacks`."""
        assert self._event is not None
        return self._event(enable_timing=True)

    def name(self) -> str:
        """The current device's, as its driver calls it; else what torch calls its kind."""
        tell = getattr(self._module, "get_device_name", None)
        return str(tell(self.current_device())) if tell is not None else self.kind


def in_use() -> Accelerator | str | None:
    """The device the program has initialised; None for none so far, a sentence where that cannot be
    known."""
    import torch

    unknown = None
    for kind in _kinds(torch):
        module = getattr(torch, kind, None)
        initialised = getattr(module, "is_initialized", None)
        if initialised is None:
            unknown = f"torch.{kind} does not tell whether the program uses it"
        elif initialised():
            return Accelerator(kind, module)
    return unknown


def _kinds(torch: Any) -> list[str]:
    general = getattr(torch, "accelerator", None)  # torch 2.6
    device = general.current_accelerator() if general is not None else None
    kinds = ["cuda"] if device is None else [device.type, "cuda"]
    return list(dict.fromkeys(kinds))
