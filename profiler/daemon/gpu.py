"""NVIDIA devices through NVML: use, memory, power, clocks, PCIe. What a device does not tell is
asked only once."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from .pace import Pace
from .reasons import Reasons, said
from .sysfs_gpu import SysfsGpus

# The driver's calls are cheap on most machines and dear on some (many devices, no persistence
# mode).
SHARE = 0.004
# The driver measures PCIe throughput over 20 ms and blocks for it, once a direction (NVML API
# reference).
PCIE_EVERY_S = 1.0

# Of the NVML API: nvmlClockType_t and nvmlPcieUtilCounter_t.
CLOCK_SM, CLOCK_MEM = 1, 2
PCIE_TX, PCIE_RX = 0, 1


def driver_present(root: Path = Path("/")) -> bool:
    """Whether an NVIDIA driver is loaded, told without loading anything."""
    places = ("proc/driver/nvidia/version", "dev/nvidiactl", "dev/dxg")
    return sys.platform == "win32" or any((root / place).exists() for place in places)


class Devices(Protocol):
    """What the sampler needs of the machine's devices, whoever tells of them."""

    def facts(self) -> list[dict[str, object]]: ...

    def rows(self, now_ns: int) -> list[tuple[int, ...]]: ...

    def start(self) -> None: ...

    def close(self) -> None: ...


def open_gpus(
    root: Path, reasons: Reasons, load: Callable[[str], Any] = importlib.import_module
) -> Devices | None:
    """The machine's devices, NVIDIA's first; None, with a reason, where there are none. Never
    raises."""
    nvidia = _open_nvidia(root, reasons, load)
    if nvidia is not None:
        return nvidia
    others = SysfsGpus(root, reasons)
    if not others.cards:
        return None
    reasons.drop("gpu")
    return others


def _open_nvidia(root: Path, reasons: Reasons, load: Callable[[str], Any]) -> Gpus | None:
    if not driver_present(root):
        sentence = "no NVIDIA driver is loaded here, or this container was not given the GPUs"
        reasons.add(f"{sentence}; sysfs shows none of AMD or Intel", "gpu")
        return None
    try:
        nvml = load("pynvml")
        nvml.nvmlInit()
        gpus = Gpus(nvml, reasons)
    except ImportError:
        reasons.add("NVML's Python binding is missing: pip install nvidia-ml-py", "gpu")
    except Exception as error:
        sentence = f"NVML does not start ({said(error)}): check that nvidia-smi works here"
        reasons.add(sentence, "gpu")
    else:
        if gpus.handles:
            return gpus
        reasons.add("the NVIDIA driver shows no device here", "gpu")
    return None


class Gpus:
    """Every device NVML shows. Rows come from the sampler's thread, PCIe throughput from a thread
    of its own."""

    def __init__(self, nvml: Any, reasons: Reasons) -> None:
        """`nvml` is the module pynvml, initialised, or one that stands in for it."""
        self._nvml = nvml
        self._reasons = reasons
        self._silent: set[tuple[int, str]] = set()
        self._pace = Pace(0, SHARE)
        self._pcie: dict[int, tuple[int, int]] = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.handles: dict[int, Any] = {}
        for gpu in range(int(nvml.nvmlDeviceGetCount())):
            handle = self._ask(gpu, "gpu", "nvmlDeviceGetHandleByIndex", gpu)
            if handle is not None:
                self.handles[gpu] = handle

    def facts(self) -> list[dict[str, object]]:
        """What does not change, a device. Never raises."""
        driver = self._plain("nvmlSystemGetDriverVersion")
        found: list[dict[str, object]] = []
        for gpu, handle in self.handles.items():
            memory = self._plain("nvmlDeviceGetMemoryInfo", handle)
            found.append(
                {
                    "index": gpu,
                    "name": _text(self._plain("nvmlDeviceGetName", handle)),
                    "uuid": _text(self._plain("nvmlDeviceGetUUID", handle)),
                    "mem_total_bytes": None if memory is None else int(memory.total),
                    # The greatest the card and the slot agree on: the present one drops while the
                    # device idles.
                    "pcie_gen": self._plain("nvmlDeviceGetMaxPcieLinkGeneration", handle),
                    "pcie_width": self._plain("nvmlDeviceGetMaxPcieLinkWidth", handle),
                    "driver": _text(driver),
                }
            )
        return found

    def rows(self, now_ns: int) -> list[tuple[int, ...]]:
        """The fields of `gpu` after t_ns, a device; empty when it is too early after a dear
        reading. Never raises."""
        if not self._pace.due(now_ns):
            return []
        begun = time.thread_time_ns()
        rows = [self._row(gpu, handle) for gpu, handle in self.handles.items()]
        self._pace.paid(now_ns, time.thread_time_ns() - begun)
        return rows

    def _row(self, gpu: int, handle: Any) -> tuple[int, ...]:
        memory = self._ask(gpu, "mem_used_bytes", "nvmlDeviceGetMemoryInfo", handle)
        power = self._ask(gpu, "power_mw", "nvmlDeviceGetPowerUsage", handle)
        use = self._ask(gpu, "util_pct", "nvmlDeviceGetUtilizationRates", handle)
        sm = self._ask(gpu, "sm_clock_mhz", "nvmlDeviceGetClockInfo", handle, CLOCK_SM)
        mem = self._ask(gpu, "mem_clock_mhz", "nvmlDeviceGetClockInfo", handle, CLOCK_MEM)
        return (
            *((-1, -1) if memory is None else (int(memory.used), int(memory.total))),
            *self._pcie.pop(gpu, (-1, -1)),  # each measurement is told once
            *(-1 if value is None else int(value) for value in (power, sm, mem)),
            *((-1, -1) if use is None else (int(use.gpu), int(use.memory))),
            gpu,
        )

    def start(self) -> None:
        """Begin to measure PCIe throughput."""
        self._thread = threading.Thread(target=self._measure_pcie, name="pcie", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(0.2)

    def _measure_pcie(self) -> None:
        wait_s = 0.0
        while not self._stop.wait(wait_s):
            begun, cpu = time.monotonic(), time.thread_time()
            told = [self.measure_pcie(gpu, handle) for gpu, handle in self.handles.items()]
            if not any(told):
                return
            wait_s = max(
                PCIE_EVERY_S - (time.monotonic() - begun), (time.thread_time() - cpu) / SHARE, 0.05
            )

    def measure_pcie(self, gpu: int, handle: Any) -> bool:
        """One measurement, about 40 ms; False once it is known that the device does not tell."""
        rx_tx: list[int] = []
        for metric, kind in (("pcie_tx_bytes_s", PCIE_TX), ("pcie_rx_bytes_s", PCIE_RX)):
            kib = self._ask(gpu, metric, "nvmlDeviceGetPcieThroughput", handle, kind)
            rx_tx.insert(0, -1 if kib is None else int(kib) * 1024)
        if max(rx_tx) >= 0:
            self._pcie[gpu] = (rx_tx[0], rx_tx[1])
        return not {(gpu, "pcie_rx_bytes_s"), (gpu, "pcie_tx_bytes_s")} <= self._silent

    def _ask(self, gpu: int, metric: str, function: str, *args: object) -> Any:
        """What the NVML function gives, None where it fails; what a device can never tell is not
        asked again."""
        if (gpu, metric) in self._silent:
            return None
        try:
            return getattr(self._nvml, function)(*args)
        except Exception as error:
            kind = type(error).__name__
            if kind.endswith("NotSupported"):
                mig = self._plain("nvmlDeviceGetMigMode", self.handles.get(gpu))
                divided = " while it is divided by MIG" if mig is not None and mig[0] == 1 else ""
                sentence = f"GPU {gpu} does not tell it{divided}"
            elif kind.endswith("NoPermission"):
                sentence = (
                    f"GPU {gpu} tells it to administrators only: run as root, or ask for access to "
                    "its counters"
                )
            elif isinstance(error, AttributeError):
                sentence = (
                    "the installed nvidia-ml-py does not know this figure: pip install -U "
                    "nvidia-ml-py"
                )
            else:
                self._reasons.add(
                    f"NVML failed at least once for GPU {gpu} ({said(error)})", metric
                )
                return None
            self._silent.add((gpu, metric))
            self._reasons.add(sentence, metric)
            return None

    def _plain(self, function: str, *args: object) -> Any:
        try:
            return getattr(self._nvml, function)(*args)
        except Exception:
            return None


def _text(value: str | bytes | None) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
