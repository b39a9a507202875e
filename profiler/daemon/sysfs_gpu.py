"""AMD and Intel devices from sysfs: use, memory, power, clocks, as far as their kernel drivers tell
without a library.

    /sys/class/drm/card0/device/vendor                  0x1002 (AMD) or 0x8086 (Intel)
    device/gpu_busy_percent, mem_busy_percent           amdgpu: share of time in which anything ran
    device/mem_info_vram_used, mem_info_vram_total      amdgpu: bytes
    device/hwmon/hwmon*/power1_average, power1_input    amdgpu: microwatts
    device/hwmon/hwmon*/freq1_input, freq2_input        amdgpu: Hz
    gt/gt0/rc6_residency_ms, rps_act_freq_mhz           i915: how long it was idle in all, and MHz
    device/tile0/gt0/gtidle/idle_residency_ms           xe: the same; freq0/act_freq: MHz

What a driver does not tell is -1, with the reason. A card that sleeps is not asked: that could wake
it.
"""

from __future__ import annotations

import time
from pathlib import Path

from .pace import Pace
from .reasons import Reasons

SHARE = 0.004
VENDORS = {"0x1002": "AMD", "0x8086": "Intel"}
# Where a figure may be, below the card's folder; the first that is there.
PLACES = {
    "used": ("device/mem_info_vram_used",),
    "total": ("device/mem_info_vram_total",),
    "microwatts": ("device/hwmon/hwmon*/power1_average", "device/hwmon/hwmon*/power1_input"),
    "hz": ("device/hwmon/hwmon*/freq1_input",),
    "mhz": ("gt/gt0/rps_act_freq_mhz", "gt_act_freq_mhz", "device/tile0/gt0/freq0/act_freq"),
    "memory_hz": ("device/hwmon/hwmon*/freq2_input",),
    "busy": ("device/gpu_busy_percent",),
    "idle_ms": (
        "gt/gt0/rc6_residency_ms",
        "power/rc6_residency_ms",
        "device/tile0/gt0/gtidle/idle_residency_ms",
    ),
    "memory_busy": ("device/mem_busy_percent",),
}
FIGURES = (
    "mem_used_bytes",
    "mem_total_bytes",
    "pcie_rx_bytes_s",
    "pcie_tx_bytes_s",
    "power_mw",
    "sm_clock_mhz",
    "mem_clock_mhz",
    "util_pct",
    "mem_util_pct",
)


class Card:
    """One device."""

    def __init__(self, folder: Path, vendor: str) -> None:
        self.folder = folder
        self.vendor = vendor
        found = {
            name: [p for place in places for p in sorted(folder.glob(place))]
            for name, places in PLACES.items()
        }
        self.files = {name: paths[0] for name, paths in found.items() if paths}
        self._idle: tuple[int, int] | None = None  # ns, idle ms in all: at the last reading

    def facts(self, index: int) -> dict[str, object]:
        device = self.folder / "device"
        name = (
            _text(device / "product_name")
            or f"{self.vendor} GPU {_text(device / 'device') or ''}".strip()
        )
        return {
            "index": index,
            "name": name,
            "uuid": _text(device / "unique_id"),
            "mem_total_bytes": self._number("total"),
            "pcie_gen": None,
            "pcie_width": _integer(_text(device / "max_link_width")),
            "driver": _driver(device),
        }

    def figures(self, now_ns: int) -> tuple[int | None, ...]:
        """As FIGURES."""
        power, hz, memory_hz = (self._number(name) for name in ("microwatts", "hz", "memory_hz"))
        return (
            self._number("used"),
            self._number("total"),
            None,
            None,
            None if power is None else power // 1000,
            self._number("mhz") if hz is None else hz // 10**6,
            None if memory_hz is None else memory_hz // 10**6,
            self._number("busy") if "busy" in self.files else self._used(now_ns),
            self._number("memory_busy"),
        )

    def asleep(self) -> bool:
        return _text(self.folder / "device/power/runtime_status") == "suspended"

    def can_tell(self, figure: str) -> bool:
        """Whether there is a file for it at all."""
        needed = {
            "mem_used_bytes": ("used",),
            "mem_total_bytes": ("total",),
            "power_mw": ("microwatts",),
            "sm_clock_mhz": ("hz", "mhz"),
            "mem_clock_mhz": ("memory_hz",),
            "util_pct": ("busy", "idle_ms"),
            "mem_util_pct": ("memory_busy",),
        }
        return any(name in self.files for name in needed.get(figure, ()))

    def _used(self, now_ns: int) -> int | None:
        """Share of the time since the last reading in which it was not idle."""
        idle_ms, before = self._number("idle_ms"), self._idle
        if idle_ms is None:
            return None
        self._idle = now_ns, idle_ms
        if before is None or now_ns <= before[0] or idle_ms < before[1]:
            return None
        return max(0, round(100 - (idle_ms - before[1]) * 1e8 / (now_ns - before[0])))

    def _number(self, name: str) -> int | None:
        return _integer(_text(self.files[name])) if name in self.files else None


class SysfsGpus:
    """Every such card whose driver tells of its use or its memory: others only show pictures."""

    def __init__(self, root: Path, reasons: Reasons) -> None:
        self._pace = Pace(0, SHARE)
        self.cards: list[Card] = []
        for folder in sorted((root / "sys/class/drm").glob("card*")):
            vendor = VENDORS.get(_text(folder / "device/vendor") or "")
            if vendor is None or not folder.name[4:].isdigit():  # card0-HDMI-A-1 is a plug
                continue
            card = Card(folder, vendor)
            if {"used", "busy", "idle_ms"} & set(card.files):
                self.cards.append(card)
        for card in self.cards:
            untold = [figure for figure in FIGURES if not card.can_tell(figure)]
            reasons.add(
                f"the kernel's driver of {card.vendor} GPUs does not tell it in sysfs", *untold
            )

    def facts(self) -> list[dict[str, object]]:
        """What does not change, a device. Never raises."""
        return [card.facts(gpu) for gpu, card in enumerate(self.cards)]

    def rows(self, now_ns: int) -> list[tuple[int, ...]]:
        """As `gpu.Gpus.rows`; a card that sleeps has no row."""
        if not self._pace.due(now_ns):
            return []
        begun = time.thread_time_ns()
        rows = [
            (*(-1 if value is None else value for value in card.figures(now_ns)), gpu)
            for gpu, card in enumerate(self.cards)
            if not card.asleep()
        ]
        self._pace.paid(now_ns, time.thread_time_ns() - begun)
        return rows

    def start(self) -> None:
        """Nothing here takes so long that it needs a thread."""

    def close(self) -> None:
        """Nothing is held."""


def _driver(device: Path) -> str | None:
    try:
        return (device / "driver").resolve(strict=True).name
    except (OSError, RuntimeError):
        return None


def _integer(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except (
        OSError
    ):  # a card that is gone, a file this user may not read, a figure the driver has not got
        return None
