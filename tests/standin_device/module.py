"""`torch.standin`, as `torch.cuda` is one: only what programs ask such a module for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .engine import Engine
from .memory import Memory


class Module:
    """One device, number 0. `on` is whether there is one; not initialised before its use."""

    def __init__(self) -> None:
        self.on = False
        self.engine: Engine = None  # type: ignore[assignment]  # until it is switched on
        self.memory = Memory()
        self._initialised = False
        self._streams = 0
        self._current = threading.local()
        self.__name__ = "torch.standin"

    def take(self, engine: Engine) -> None:
        self.engine, self._initialised, self.on = engine, False, True
        self._current = threading.local()

    def __getattr__(self, name: str) -> Any:
        if name == "Event" and self.engine is not None and self.engine.spec.timed_events:
            return lambda enable_timing=False, blocking=False: Event(self, enable_timing)
        raise AttributeError(name)

    def init(self) -> None:
        if not self.on:
            raise RuntimeError("the stand-in is switched off")
        self._initialised = True

    # What torch itself asks for.

    def is_available(self) -> bool:
        return self.on

    def is_initialized(self) -> bool:
        return self.on and self._initialised

    def device_count(self) -> int:
        return int(self.on)

    def current_device(self) -> int:
        self.init()
        return 0

    def set_device(self, device: Any) -> None:
        self.init()

    def get_device_name(self, device: Any = None) -> str:
        return self.engine.spec.name

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        """Random numbers are drawn by the CPU's generator."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16]

    # Streams.

    def Stream(self) -> Stream:
        self._streams += 1
        return Stream(self, self._streams)

    def current_stream(self, device: Any = None) -> Stream:
        return Stream(self, self.stream_number())

    def stream_number(self) -> int:
        return int(getattr(self._current, "number", 0))

    @contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        before, self._current.number = self.stream_number(), stream.number
        try:
            yield
        finally:
            self._current.number = before

    def synchronize(self, device: Any = None) -> None:
        self.init()
        self.engine.wait(self.engine.all_done_ns(), "device")

    # Work of a given length.

    def spin(self, milliseconds: float) -> None:
        """A kernel that takes so long, on the current stream."""
        self.init()
        with self.engine.working():
            self.engine.kernel(self.stream_number(), milliseconds * 1e6, "spin")


class Stream:
    """A queue of work, by its number."""

    def __init__(self, module: Module, number: int) -> None:
        self._module = module
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.number == self.number

    def __hash__(self) -> int:
        return self.number

    def wait_stream(self, other: Stream) -> None:
        engine = self._module.engine
        engine.hold(self.number, engine.reached_ns(other.number))


class Event:
    """Stamped when what its stream was given before is done; never done until recorded."""

    def __init__(self, module: Module, enable_timing: bool) -> None:
        self._module = module
        self._timing = enable_timing
        self.at_ns = 0

    def record(self, stream: Stream | None = None) -> None:
        self._module.init()
        engine = self._module.engine
        with engine.working():
            number = self._module.stream_number() if stream is None else stream.number
            self.at_ns = engine.reached_ns(number)

    def query(self) -> bool:
        return self.at_ns <= self._module.engine.clock.now_ns()

    def synchronize(self) -> None:
        self._module.engine.wait(self.at_ns, "event")

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds. As on CUDA, an error where either is not done: nothing waits here."""
        if not (self._timing and end._timing):
            raise ValueError("both events must be made with enable_timing=True")
        if not (self.query() and end.query()):
            raise RuntimeError("device not ready: an event has not been reached")
        return (end.at_ns - self.at_ns) / 1e6
