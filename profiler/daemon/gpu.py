"""NVIDIA devices through NVML: use, memory, power, clocks. A figure that a device does not report
is requested only once."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..base.facts import GpuFacts
from .pace import Pace
from .reasons import Reasons, said

CLOCK_SM = 1  # nvmlClockType_t
# Of a core. A reading is cheap on most machines and expensive on some (many devices, no persistence
# mode).
SHARE = 0.004
# Errors after which a figure is not asked for again.
NEVER = ("NotSupported", "NoPermission", "AttributeError")


def driver_present(root: Path) -> bool:
    """Whether an NVIDIA driver is loaded, without loading anything."""
    places = ("proc/driver/nvidia/version", "dev/nvidiactl", "dev/dxg")
    return any((root / place).exists() for place in places)


class Gpus:
    """Every device NVML shows; where there are none, the reason."""

    def __init__(
        self, root: Path, reasons: Reasons, load: Callable[[str], Any] = importlib.import_module
    ) -> None:
        """`load` imports pynvml, or what stands in for it. Never raises."""
        self._reasons = reasons
        self._silent: set[tuple[int, str]] = set()
        self._pace = Pace(SHARE)
        self.handles: dict[int, Any] = {}
        try:
            if not driver_present(root):
                raise LookupError(
                    "no NVIDIA driver is loaded here, or this container was not given the GPUs"
                )
            self._nvml = load("pynvml")
            self._nvml.nvmlInit()
            for gpu in range(int(self._nvml.nvmlDeviceGetCount())):
                handle = self._ask(gpu, "gpu", "nvmlDeviceGetHandleByIndex", gpu)
                if handle is not None:
                    self.handles[gpu] = handle
            if not self.handles:
                raise LookupError("the NVIDIA driver shows no device here")
        except ImportError:
            reasons.add("NVML's Python binding is missing: pip install nvidia-ml-py", "gpu")
        except LookupError as error:
            reasons.add(str(error), "gpu")
        except Exception as error:
            why = f"NVML does not start ({said(error)}): check that nvidia-smi works here"
            reasons.add(why, "gpu")

    def facts(self) -> list[GpuFacts]:
        """What does not change, a device. Never raises."""
        found = []
        for gpu, handle in self.handles.items():
            memory = self._plain("nvmlDeviceGetMemoryInfo", handle)
            name = self._plain("nvmlDeviceGetName", handle)
            total = None if memory is None else int(memory.total)
            found.append(GpuFacts(gpu, name or "GPU", total))
        return found

    def rows(self, now_ns: int) -> list[tuple[int, ...]]:
        """The fields of `gpu` after t_ns, a device; empty if it is too early after an expensive
        reading. Never raises."""
        if not self._pace.due(now_ns):
            return []
        begun = time.thread_time_ns()
        rows = [self._row(gpu, handle) for gpu, handle in self.handles.items()]
        self._pace.paid(now_ns, time.thread_time_ns() - begun)
        return rows

    def _row(self, gpu: int, handle: Any) -> tuple[int, ...]:
        memory, power, use, clock = (
            self._ask(gpu, metric, f"nvmlDeviceGet{what}", handle, *which)
            for metric, what, *which in (
                ("mem_used_bytes", "MemoryInfo"),
                ("power_mw", "PowerUsage"),
                ("util_pct", "UtilizationRates"),
                ("sm_clock_mhz", "ClockInfo", CLOCK_SM),
            )
        )
        return (
            *((-1, -1) if memory is None else (int(memory.used), int(memory.total))),
            *(-1 if value is None else int(value) for value in (power, clock)),
            -1 if use is None else int(use.gpu),
            gpu,
        )

    def _ask(self, gpu: int, metric: str, function: str, *args: object) -> Any:
        """The result of an NVML function, None where it fails. What a device never reports is not
        requested again."""
        if (gpu, metric) in self._silent:
            return None
        try:
            return getattr(self._nvml, function)(*args)
        except Exception as error:
            kind = type(error).__name__.removeprefix("NVMLError_")
            if kind in NEVER:
                self._silent.add((gpu, metric))
            self._reasons.add(f"NVML does not tell it of GPU {gpu} ({kind}: {said(error)})", metric)
            return None

    def _plain(self, function: str, *args: object) -> Any:
        try:
            return getattr(self._nvml, function)(*args)
        except Exception:
            return None
