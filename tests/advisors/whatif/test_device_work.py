"""What changes do where a device works beside the program, worked out by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from builders import MS, epoch_row, loop, opened
from loaderscope.advisors.whatif import WhatIf, workload_of
from loaderscope.profiler.store.run.device_steps import DeviceSteps, Wait

LOAD, COPY, KERNEL = 6.0, 4.0, 5.0


def model(path, wait, compute, device, stall, steps=None, pin=True, **columns: Any) -> WhatIf:
    """A loop that makes a batch in LOAD ms and copies it in COPY; `steps`: seen of the device's."""
    ms = {"fetch_ns": LOAD, "fetch_cpu_ns": LOAD, "h2d_ns": COPY, "h2d_host_ns": COPY}
    ms |= {"compute_device_ns": device, "stall_ns": stall}
    ms |= {name: value for name, value in columns.items() if name.endswith("_ns")}
    counts = {"h2d_copies": 1, "h2d_pinned": 1, "h2d_blocking": 0, "h2d_bytes": 1_000_000}
    counts |= {"pin_ns": 1, "tensors": 1, "bytes": 1_000_000, **columns}
    counts |= dict.fromkeys(("index_ns", "collate_ns", "collate_cpu_ns"), 0)
    counts |= {name: round(value * MS) for name, value in ms.items()}
    rows = loop(200, wait, compute, **counts)
    config = {"dataset_len": 4_000_000, "pin_memory": pin}
    process = {"affinity": 1, "device": "cuda:0"}
    run = opened(path / "runs", rows, process=process, epochs=[epoch_row(rows)], config=config)
    loader = replace(run.loaders[0], device_steps=steps)
    return WhatIf(workload_of(run, run.processes[0], loader))


def test_copies_that_are_waited_for(tmp_path: Path) -> None:
    # Kernels of the step before end while a batch is loaded; its copy is then waited for.
    found = model(tmp_path, LOAD, COPY, COPY + KERNEL, LOAD - KERNEL, h2d_blocking=1)
    assert found.misfit == pytest.approx(1, rel=0.01)
    ahead = (LOAD + COPY) / (COPY + KERNEL)
    assert found.predict(non_blocking=True).mid == pytest.approx(ahead, rel=0.01)
    assert found.predict(h2d=0.5).mid == pytest.approx((LOAD + COPY) / (LOAD + COPY / 2), rel=0.01)


def test_many_copies_leave_the_device_idle_while_they_are_issued(tmp_path: Path) -> None:
    copying = COPY + 3.0
    device = {"device": copying + KERNEL, "stall": LOAD - KERNEL}
    found = model(tmp_path, LOAD, copying, **device, h2d_blocking=1, h2d_host_ns=copying)
    expected = (LOAD + copying) / (LOAD + 0.1 * copying)
    assert found.predict(h2d=0.1).mid == pytest.approx(expected, rel=0.02)


def test_copies_out_of_ordinary_memory_wait_whatever_was_asked(tmp_path: Path) -> None:
    found = model(tmp_path, LOAD, COPY, COPY + KERNEL, LOAD - KERNEL, pin=False, h2d_pinned=0)
    assert found.predict(non_blocking=True).mid == pytest.approx(1.11, abs=0.01)
    pinned = found.predict(pin_memory=True, h2d=0.5, pin=0.0)
    assert pinned.mid == pytest.approx((LOAD + COPY) / (COPY / 2 + KERNEL), rel=0.03)


def test_copies_in_the_way_of_computing(tmp_path: Path) -> None:
    # The program's own step takes 6.1 ms; the device's, copy and kernels, 9.
    found = model(tmp_path, LOAD, 0.1, COPY + KERNEL, 0.0, h2d_host_ns=0.05)
    assert found.baseline_batches_per_s == pytest.approx(1000 / (COPY + KERNEL), rel=0.01)
    beside = (COPY + KERNEL) / (LOAD + 0.1)
    assert found.predict(copy_stream=True).mid == pytest.approx(beside, rel=0.02)
    assert found.predict(fetch=0.1).mid == pytest.approx(1, abs=0.01)
    seen = DeviceSteps(8, 1.0, ())
    aside = model(tmp_path / "aside", LOAD, 0.1, LOAD + 0.1, 0.0, seen, h2d_host_ns=0.05)
    assert aside.predict(copy_stream=True).mid == 1.0  # they are aside already


def test_steps_whose_end_is_waited_for(tmp_path: Path) -> None:
    seen = DeviceSteps(8, 0.0, (Wait("item", "train.py:1", None, 1.0, (COPY + KERNEL) * MS),))
    found = model(tmp_path, LOAD, COPY + KERNEL, COPY + KERNEL, LOAD, seen, h2d_host_ns=0.05)
    together = (LOAD + COPY + KERNEL) / (COPY + KERNEL)
    assert found.predict(synchronous=False).mid == pytest.approx(together, rel=0.02)
    now_and_then = structs.replace(seen, waits=(structs.replace(seen.waits[0], a_step=0.125),))
    seldom = model(tmp_path / "b", LOAD, 9, 9, LOAD, now_and_then)
    assert seldom.predict(synchronous=False).mid == 1.0


def test_without_device_times_the_loop_is_judged_by_the_program_alone(tmp_path: Path) -> None:
    untimed = model(tmp_path, LOAD, COPY, -1 / MS, -1 / MS, h2d_blocking=1)
    assert untimed.predict(non_blocking=True) == untimed.predict(synchronous=False)
    assert untimed.predict(non_blocking=True).mid == 1.0
