"""Which device this process uses, and what its backend offers: CUDA, ROCm, XPU, MPS, NPU, HPU or
another one.

Everything is looked up by feature. Nothing here initialises a device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Event = Any  # of torch: record(), query(), elapsed_time(end)


class Accelerator:
    """One kind of device, and the module of torch that speaks for it."""

    def __init__(self, kind: str, module: Any) -> None:
        """`module` is `torch.cuda`, or something of the same shape."""
        import torch

        self.kind = kind
        self._module = module
        general = getattr(torch, "accelerator", None)
        index = getattr(general, "current_device_index", lambda: 0)
        self.current_device: Callable[[], int] = getattr(module, "current_device", index)
        capturing = getattr(module, "is_current_stream_capturing", lambda: False)
        self.capturing: Callable[[], bool] = capturing
        # None if the backend does not tell.
        self.stream: Callable[[], Any] | None = getattr(module, "current_stream", None)
        self._event: Callable[..., Event] | None = getattr(module, "Event", None)
        if self._event is None and hasattr(torch, "Event") and general is not None:
            self._event = lambda enable_timing: torch.Event(kind, enable_timing=enable_timing)
        self.lacks = None if self._event is not None else f"torch.{kind} has no events"

    def event(self) -> Event:
        """A new event with times. Only if nothing `lacks`."""
        assert self._event is not None
        return self._event(enable_timing=True)

    def name(self) -> str:
        """The driver's name for the current device, or torch's name for its kind."""
        tell = getattr(self._module, "get_device_name", None)
        return str(tell(self.current_device())) if tell is not None else self.kind


def in_use() -> Accelerator | str | None:
    """The device the program has initialised, None if there is none so far, or a sentence if that
    is unknown."""
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
