"""AMD and Intel devices from sysfs: use, memory, power, clocks, as far as their kernel drivers
report them without a library.

What a driver does not report is -1, with the reason. A card that sleeps is not asked: that could
wake it.
"""

from __future__ import annotations

from pathlib import Path

from ..base.facts import GpuFacts
from .devices import Devices
from .reasons import Reasons

VENDORS = {"0x1002": "AMD", "0x8086": "Intel"}
# The figures of the lane `gpu`: the files below the card's folder that may hold one, of which the
# first that is there counts, and by what its number is divided.
FIGURES: dict[str, tuple[tuple[str, int], ...]] = {
    "mem_used_bytes": (("device/mem_info_vram_used", 1),),
    "mem_total_bytes": (("device/mem_info_vram_total", 1),),
    "pcie_rx_bytes_s": (),
    "pcie_tx_bytes_s": (),
    "power_mw": (
        ("device/hwmon/hwmon*/power1_average", 1000),
        ("device/hwmon/hwmon*/power1_input", 1000),
    ),
    "sm_clock_mhz": (
        ("device/hwmon/hwmon*/freq1_input", 10**6),  # amdgpu
        ("gt/gt0/rps_act_freq_mhz", 1),  # i915
        ("gt_act_freq_mhz", 1),
        ("device/tile0/gt0/freq0/act_freq", 1),  # xe
    ),
    "mem_clock_mhz": (("device/hwmon/hwmon*/freq2_input", 10**6),),
    "util_pct": (("device/gpu_busy_percent", 1),),
    "mem_util_pct": (("device/mem_busy_percent", 1),),
}
# Intel's drivers report for how long the card was idle in all.
IDLE_MS = (
    ("gt/gt0/rc6_residency_ms", 1),  # i915
    ("power/rc6_residency_ms", 1),
    ("device/tile0/gt0/gtidle/idle_residency_ms", 1),  # xe
)


class Card:
    """One device."""

    def __init__(self, folder: Path, vendor: str) -> None:
        self.folder = folder
        self.vendor = vendor
        self.files = {
            name: found[0]
            for name, places in {**FIGURES, "idle_ms": IDLE_MS}.items()
            if (found := [(p, by) for place, by in places for p in sorted(folder.glob(place))])
        }
        self._idle: tuple[int, int] | None = None  # ns, idle ms in all: at the last reading

    def facts(self, index: int) -> GpuFacts:
        device = self.folder / "device"
        driver = (device / "driver").resolve()
        name = f"{self.vendor} GPU {_text(device / 'device') or ''}".strip()
        return GpuFacts(
            index,
            _text(device / "product_name") or name,
            _text(device / "unique_id"),
            self._number("mem_total_bytes"),
            pcie_width=_integer(device / "max_link_width"),
            driver=driver.name if driver.exists() else None,
        )

    def row(self, now_ns: int) -> list[int]:
        """As FIGURES."""
        idle = self._used(now_ns)
        found = [idle if n == "util_pct" and idle is not None else self._number(n) for n in FIGURES]
        return [-1 if value is None else value for value in found]

    def asleep(self) -> bool:
        return _text(self.folder / "device/power/runtime_status") == "suspended"

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
        file, by = self.files.get(name, (None, 1))
        value = None if file is None else _integer(file)
        return None if value is None else value // by


class SysfsGpus(Devices):
    """Every such card whose driver reports its use or its memory: others only show pictures."""

    def __init__(self, root: Path, reasons: Reasons) -> None:
        super().__init__()
        self.cards: list[Card] = []
        for folder in sorted((root / "sys/class/drm").glob("card*")):
            vendor = VENDORS.get(_text(folder / "device/vendor") or "")
            if vendor is None or not folder.name[4:].isdigit():  # card0-HDMI-A-1 is a plug
                continue
            card = Card(folder, vendor)
            known = set(card.files) | ({"util_pct"} if "idle_ms" in card.files else set())
            if {"mem_used_bytes", "util_pct"} & known:
                self.cards.append(card)
                sentence = f"the kernel's driver of {vendor} GPUs does not report it in sysfs"
                reasons.add(sentence, *(name for name in FIGURES if name not in known))

    def facts(self) -> list[GpuFacts]:
        return [card.facts(gpu) for gpu, card in enumerate(self.cards)]

    def read(self, now_ns: int) -> list[tuple[int, ...]]:
        return [
            (*card.row(now_ns), gpu) for gpu, card in enumerate(self.cards) if not card.asleep()
        ]


def _integer(path: Path) -> int | None:
    try:
        return int(_text(path) or "")
    except ValueError:
        return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:  # a card that is gone, or a file this user may not read
        return None
