from types import SimpleNamespace

import pytest

from loaderscope.profiler.base.facts import GpuFacts
from loaderscope.profiler.base.schema import GPU
from loaderscope.profiler.daemon.gpu import Gpus
from loaderscope.profiler.daemon.reasons import Reasons


# Named as NVML's binding names them.
class NVMLError_NotSupported(Exception): ...


class NVMLError_NoPermission(Exception): ...


class FakeNvml:
    """Two devices. `failing` maps a function's name to what it raises; `calls` counts."""

    def __init__(self, failing=None):
        self.failing = failing or {}
        self.calls = {}
        self.answers = {
            "nvmlInit": lambda: None,
            "nvmlDeviceGetCount": lambda: 2,
            "nvmlDeviceGetHandleByIndex": lambda index: f"gpu{index}",
            "nvmlDeviceGetName": lambda handle: "H200",
            "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(used=10, total=100),
            "nvmlDeviceGetPowerUsage": lambda handle: 70_000,
            "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=42, memory=7),
            "nvmlDeviceGetClockInfo": lambda handle, kind: {1: 1980}[kind],
        }

    def __getattr__(self, name):
        if name not in self.__dict__.get("answers", {}):
            raise AttributeError(name)

        def call(*args):
            self.calls[name] = self.calls.get(name, 0) + 1
            if name in self.failing:
                raise self.failing[name]
            return self.answers[name](*args)

        return call


def driver(root):
    (root / "proc/driver/nvidia").mkdir(parents=True)
    (root / "proc/driver/nvidia/version").write_text("NVRM")
    return root


def gpus_of(root, nvml, reasons=None):
    return Gpus(driver(root), reasons or Reasons(), lambda name: nvml)


def named(row):
    names = [field.name for field in GPU.fields][2:]
    assert len(names) == len(row)
    return dict(zip(names, row, strict=True))


def test_facts_and_a_row_in_the_schema_s_order_and_units(tmp_path):
    gpus = gpus_of(tmp_path, FakeNvml())
    assert gpus.facts()[1] == GpuFacts(1, "H200", 100)
    assert named(gpus.rows(0)[1]) == {
        "mem_used_bytes": 10,
        "mem_total_bytes": 100,
        "power_mw": 70_000,
        "sm_clock_mhz": 1980,
        "util_pct": 42,
        "gpu": 1,
    }


@pytest.mark.parametrize(
    ("failing", "why"),
    [
        (NVMLError_NotSupported(), "NotSupported"),
        (NVMLError_NoPermission(), "NoPermission"),
        (None, "AttributeError"),  # an old binding lacks the function
    ],
)
def test_what_is_never_told_has_a_reason_and_is_asked_once(tmp_path, failing, why):
    function = "nvmlDeviceGetUtilizationRates"
    nvml, reasons = FakeNvml({function: failing} if failing else None), Reasons()
    if failing is None:
        del nvml.answers[function]
    gpus = gpus_of(tmp_path, nvml, reasons)
    for now in (0, 1 << 61, 1 << 62):
        row = named(gpus.rows(now)[0])
    assert (row["util_pct"], row["power_mw"]) == (-1, 70_000)
    assert why in reasons.sentences["util_pct"]
    assert nvml.calls.get(function, 2) == 2  # once a device


def test_a_passing_failure_is_tried_again(tmp_path):
    nvml = FakeNvml({"nvmlDeviceGetPowerUsage": RuntimeError("GPU is lost")})
    gpus = gpus_of(tmp_path, nvml)
    assert named(gpus.rows(0)[0])["power_mw"] == -1
    nvml.failing.clear()
    assert named(gpus.rows(1 << 62)[0])["power_mw"] == 70_000


def test_without_a_driver_nothing_is_loaded(tmp_path):
    reasons, loaded = Reasons(), []
    assert Gpus(tmp_path, reasons, loaded.append).facts() == []
    assert loaded == []
    assert "driver" in reasons.sentences["gpu"]


REFUSED, MISMATCH = NVMLError_NoPermission(), RuntimeError("version mismatch")


@pytest.mark.parametrize(
    ("load", "why"),
    [
        (lambda name: FakeNvml({"nvmlInit": MISMATCH}), "mismatch"),
        (lambda name: __import__("no_such"), "pip install"),
        (lambda name: FakeNvml({"nvmlDeviceGetHandleByIndex": REFUSED}), "NoPermission"),
    ],
)
def test_no_devices_have_a_reason(tmp_path, load, why):
    reasons = Reasons()
    assert Gpus(driver(tmp_path), reasons, load).rows(0) == []
    assert why in reasons.sentences["gpu"]
