"""AMD's devices, on trees as their driver makes them."""

from __future__ import annotations

from pathlib import Path

from loaderscope.profiler.base.facts import GpuFacts
from loaderscope.profiler.base.schema import GPU
from loaderscope.profiler.daemon.gpu import open_gpus
from loaderscope.profiler.daemon.reasons import Reasons
from loaderscope.profiler.daemon.sysfs_gpu import FIGURES, SysfsGpus


def tree(root: Path, card: str, files: dict[str, str]) -> Path:
    folder = root / "sys/class/drm" / card
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return folder


AMD = {
    "device/vendor": "0x1002",
    "device/device": "0x740f",
    "device/product_name": "Instinct MI210",
    "device/unique_id": "8d01e3a5f60d1cc2",
    "device/max_link_width": "16",
    "device/gpu_busy_percent": "87",
    "device/mem_busy_percent": "12",
    "device/mem_info_vram_used": "1048576",
    "device/mem_info_vram_total": "68702699520",
    "device/hwmon/hwmon3/power1_average": "205000000",
    "device/hwmon/hwmon3/freq1_input": "1700000000",
    "device/hwmon/hwmon3/freq2_input": "1600000000",
}


def named(row: tuple[int, ...]) -> dict[str, int]:
    return dict(zip([field.name for field in GPU.fields][2:], row, strict=True))


def test_the_figures_are_the_schema_s() -> None:
    assert [field.name for field in GPU.fields][2:] == [*FIGURES, "gpu"]


def test_amd(tmp_path: Path) -> None:
    tree(tmp_path, "card1", AMD)
    reasons = Reasons()
    gpus = open_gpus(tmp_path, reasons)
    assert isinstance(gpus, SysfsGpus)
    assert gpus.facts() == [
        GpuFacts(0, "Instinct MI210", "8d01e3a5f60d1cc2", 68702699520, pcie_width=16)
    ]
    assert named(gpus.rows(0)[0]) == {
        "mem_used_bytes": 1048576,
        "mem_total_bytes": 68702699520,
        "pcie_rx_bytes_s": -1,
        "pcie_tx_bytes_s": -1,
        "power_mw": 205_000,
        "sm_clock_mhz": 1700,
        "mem_clock_mhz": 1600,
        "util_pct": 87,
        "mem_util_pct": 12,
        "gpu": 0,
    }
    assert set(reasons.sentences) == {"pcie_rx_bytes_s", "pcie_tx_bytes_s"}
    assert "AMD" in reasons.sentences["pcie_rx_bytes_s"]


def test_what_cannot_be_read_is_missing(tmp_path: Path) -> None:
    folder = tree(tmp_path, "card0", {**AMD, "device/gpu_busy_percent": "busy"})
    gpus = SysfsGpus(tmp_path, Reasons())
    (folder / "device/mem_info_vram_used").unlink()
    row = named(gpus.rows(0)[0])
    assert (row["util_pct"], row["mem_used_bytes"], row["power_mw"]) == (-1, -1, 205_000)


def test_a_card_that_sleeps_is_left_alone(tmp_path: Path) -> None:
    tree(tmp_path, "card0", {**AMD, "device/power/runtime_status": "suspended"})
    tree(tmp_path, "card1", {**AMD, "device/power/runtime_status": "active"})
    assert [named(row)["gpu"] for row in SysfsGpus(tmp_path, Reasons()).rows(0)] == [1]


def test_other_cards_are_none(tmp_path: Path) -> None:
    tree(tmp_path, "card0", {"device/vendor": "0x1af4"})  # a virtual machine's
    tree(tmp_path, "card1", {"device/vendor": "0x1002"})  # without amdgpu
    tree(tmp_path, "card2-HDMI-A-1", AMD)
    reasons = Reasons()
    assert open_gpus(tmp_path, reasons).facts() == []
    assert "AMD" in reasons.sentences["gpu"]
