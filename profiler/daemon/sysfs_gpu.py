"""AMD devices from sysfs: use, memory, power, clocks, which the kernel's driver reports without a
library.

What the driver does not report is -1, with the reason. A card that sleeps is not asked: that could
wake it.
"""

from __future__ import annotations

from pathlib import Path

from ..base.facts import GpuFacts
from .devices import Devices
from .reasons import Reasons

AMD = "0x1002"
# The figures of the lane `gpu`: the files below the card's device that may hold one, of which the
# first that is there counts, and by what its number is divided.
FIGURES: dict[str, tuple[tuple[str, int], ...]] = {
    "mem_used_bytes": (("mem_info_vram_used", 1),),
    "mem_total_bytes": (("mem_info_vram_total", 1),),
    "pcie_rx_bytes_s": (),
    "pcie_tx_bytes_s": (),
    "power_mw": (("hwmon/hwmon*/power1_average", 1000), ("hwmon/hwmon*/power1_input", 1000)),
    "sm_clock_mhz": (("hwmon/hwmon*/freq1_input", 10**6),),
    "mem_clock_mhz": (("hwmon/hwmon*/freq2_input", 10**6),),
    "util_pct": (("gpu_busy_percent", 1),),
    "mem_util_pct": (("mem_busy_percent", 1),),
}


class Card:
    """One device."""

    def __init__(self, device: Path) -> None:
        self.device = device
        self.files = {
            name: found[0]
            for name, places in FIGURES.items()
            if (found := [(p, by) for place, by in places for p in sorted(device.glob(place))])
        }

    def facts(self, index: int) -> GpuFacts:
        driver = (self.device / "driver").resolve()
        return GpuFacts(
            index,
            self._text("product_name") or f"AMD GPU {self._text('device')}".strip(),
            self._text("unique_id") or None,
            self._number("mem_total_bytes"),
            pcie_width=_integer(self._text("max_link_width")),
            driver=driver.name if driver.exists() else None,
        )

    def row(self) -> list[int]:
        """As FIGURES."""
        return [-1 if (value := self._number(name)) is None else value for name in FIGURES]

    def asleep(self) -> bool:
        return self._text("power/runtime_status") == "suspended"

    def _number(self, name: str) -> int | None:
        file, by = self.files.get(name, (None, 1))
        value = None if file is None else _integer(_text(file))
        return None if value is None else value // by

    def _text(self, name: str) -> str:
        return _text(self.device / name)


class SysfsGpus(Devices):
    """Every such card whose driver reports its use or its memory: others only show pictures."""

    def __init__(self, root: Path, reasons: Reasons) -> None:
        super().__init__()
        self.cards: list[Card] = []
        for folder in sorted((root / "sys/class/drm").glob("card*")):
            device = folder / "device"
            # card0-HDMI-A-1 is a plug.
            if _text(device / "vendor") != AMD or not folder.name[4:].isdigit():
                continue
            card = Card(device)
            if {"mem_used_bytes", "util_pct"} & card.files.keys():
                self.cards.append(card)
                sentence = "the kernel's driver of AMD GPUs does not report it in sysfs"
                reasons.add(sentence, *(name for name in FIGURES if name not in card.files))

    def facts(self) -> list[GpuFacts]:
        return [card.facts(gpu) for gpu, card in enumerate(self.cards)]

    def read(self) -> list[tuple[int, ...]]:
        return [(*card.row(), gpu) for gpu, card in enumerate(self.cards) if not card.asleep()]


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _text(path: Path) -> str:
    """ "" for a card that is gone, or a file that this user may not read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
