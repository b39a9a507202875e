"""The stand-in itself: what it computes, when, and what it has of torch."""

from __future__ import annotations

import copy
import dataclasses
import threading
import time
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import standin_device as standin
from standin_device import SetClock

MS = 1_000_000
FREE = {"kernel_us": 0.0, "device_gb_s": 1e9, "pin_us": 0.0}
GB_S = standin.Spec(link_gb_s=1.0, pageable_gb_s=0.5, copy_us=10.0, **FREE)


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def device(standin_on: Any, clock: SetClock) -> Any:
    return standin_on(GB_S, clock)


def pinned(nbytes: int) -> torch.Tensor:
    return torch.ones(nbytes // 4).pin_memory()


def test_torch_takes_it_for_an_accelerator(device: Any) -> None:
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator() == torch.device("standin")
    assert torch.get_device_module("standin") is device
    assert not device.is_initialized()
    x = torch.ones(2).to("standin")
    assert device.is_initialized()
    assert x.device == torch.device("standin:0")
    standin.switch_off()
    assert not torch.accelerator.is_available()
    assert not device.is_initialized()


def test_it_learns_what_the_cpu_learns(device: Any) -> None:
    torch.manual_seed(1)
    parts = (torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU())
    here = torch.nn.Sequential(*parts, torch.nn.Flatten(), torch.nn.Linear(18, 3))
    there = copy.deepcopy(here).to("standin")
    x, y = torch.randn(8, 1, 5, 5), torch.arange(8) % 3

    def learnt(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> list[float]:
        optimiser = torch.optim.AdamW(model.parameters(), lr=0.01)
        losses = []
        for _ in range(5):
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        return losses

    learnt_there = learnt(there, x.to("standin"), y.to("standin"))
    assert learnt_there == pytest.approx(learnt(here, x, y), rel=1e-5)


def test_views_share_memory_whatever_their_strides(device: Any) -> None:
    x = torch.arange(12.0).view(3, 4)
    y = x.to("standin")
    y.t()[1].fill_(7)
    x.t()[1].fill_(7)
    assert torch.equal(y.cpu(), x)
    assert torch.equal(y.t().t()[1:].cpu(), x[1:])
    assert "standin:0" in repr(y)


def test_a_copy_from_page_locked_memory_is_not_waited_for(device: Any, clock: SetClock) -> None:
    batch = pinned(4 * MS)  # 4 ms on this link
    began = clock.t_ns
    there = batch.to("standin", non_blocking=True)
    assert clock.t_ns == began
    (work,) = [w for w in device.engine.account if w.kind == "h2d"]
    assert work.end_ns - work.start_ns == 4 * MS + 10_000
    assert (work.pinned, work.blocking, work.nbytes) == (True, False, 4 * MS)
    assert not device.engine.synchronised
    assert there.sum().item() == MS
    assert clock.t_ns == work.end_ns


def test_other_copies_are_waited_for(device: Any, clock: SetClock) -> None:
    began = clock.t_ns
    torch.ones(MS).to("standin", non_blocking=True)
    assert clock.t_ns - began == 8 * MS + 10_000  # at the slower rate, in the driver
    assert not device.engine.synchronised
    batch = pinned(4 * MS)
    began = clock.t_ns
    batch.to("standin")
    assert clock.t_ns - began == 4 * MS + 10_000
    assert device.engine.synchronised == {"copy": 1}


def test_streams_overlap_copies_with_kernels(device: Any, clock: SetClock) -> None:
    device.init()
    batch, side = pinned(4 * MS), device.Stream()
    device.engine.account.clear()
    device.spin(6)
    with device.stream(side):
        batch.to("standin", non_blocking=True)
    device.current_stream().wait_stream(side)
    device.spin(1)
    first, copied, second = device.engine.account
    assert copied.start_ns == first.start_ns  # beside it
    assert second.start_ns == first.end_ns  # one engine
    assert copied.stream != first.stream == second.stream
    assert device.engine.busy_ns(0, clock.t_ns + 100 * MS) == 7 * MS
    batch.to("standin", non_blocking=True)  # on the same stream: after the kernel
    assert device.engine.account[-1].start_ns == second.end_ns


def test_events_are_stamped_by_the_device(device: Any, clock: SetClock) -> None:
    start, end = device.Event(enable_timing=True), device.Event(enable_timing=True)
    start.record()
    device.spin(3)
    end.record()
    assert start.query() and not end.query()
    with pytest.raises(RuntimeError, match="not ready"):
        start.elapsed_time(end)
    clock.t_ns += 3 * MS
    assert start.elapsed_time(end) == 3.0
    assert not device.engine.synchronised
    end.synchronize()
    assert device.engine.synchronised == {"event": 1}


def test_what_makes_the_host_wait_is_counted(device: Any, clock: SetClock) -> None:
    x = torch.ones(4).to("standin")
    device.engine.synchronised.clear()
    x.sum().item()
    x.cpu()
    torch.equal(x, x)
    device.synchronize()
    assert device.engine.synchronised == {"item": 2, "copy": 1, "device": 1}


def test_the_queue_is_bounded(standin_on: Any, clock: SetClock) -> None:
    device = standin_on(standin.Spec(queue=4), clock)
    began = clock.t_ns
    for _ in range(6):
        device.spin(1)
    assert clock.t_ns - began == 2 * MS  # the fifth waits for the first, the sixth for the second


def test_loaders_pin(device: Any) -> None:
    for workers in (0, 1):
        loader = DataLoader(torch.ones(8, 4), batch_size=4, pin_memory=True, num_workers=workers)
        assert all(batch.is_pinned() for batch in loader)
    assert not any(batch.is_pinned() for batch in DataLoader(torch.ones(8, 4), batch_size=4))


def test_in_its_own_time_only_the_program_counts(standin_on: Any) -> None:
    clock = standin.OwnTime(call_us=3.0)
    device = standin_on(GB_S, clock)
    source = pinned(1_000_000)
    began, cpu = clock.now_ns(), clock.cpu_ns()
    time.sleep(0.05)  # of the machine's time, as if another program had the core
    assert clock.now_ns() - began < 20 * MS
    clock.compute(7)
    began, cpu = clock.now_ns(), clock.cpu_ns()
    source.to("standin")  # waited for, without waiting: 1 ms and 10 µs on the link
    took, computed = clock.now_ns() - began, clock.cpu_ns() - cpu
    # The two clocks are not read at once: in between, a garbage collection may compute.
    assert took - computed == pytest.approx(1.01 * MS, abs=100_000)
    (work,) = device.engine.account
    assert work.end_ns - work.start_ns == 1.01 * MS
    began = clock.now_ns()
    with device.engine.working():
        sum(range(100_000))  # what the stand-in computes in the place of the device
    assert clock.now_ns() - began < MS
    thread = threading.Thread(target=torch.ones(1).is_pinned)  # one that has computed for less long
    thread.start()
    thread.join()
    assert clock.now_ns() - began < MS


def test_blocks_of_page_locked_memory_are_locked_once(standin_on: Any, clock: SetClock) -> None:
    spec = dataclasses.replace(GB_S, pin_us=1.0, pin_gb_s=1e9, lock_us=1000.0)
    standin_on(spec, clock)

    def took_us(nbytes: int) -> float:
        began = clock.now_ns()
        torch.ones(nbytes // 4).pin_memory()  # given back at once
        return (clock.now_ns() - began) / 1e3

    assert [round(took_us(nbytes)) for nbytes in (3_000, 4_000, 4_096, 5_000)] == [1001, 1, 1, 1001]
    held = torch.ones(1000).pin_memory()
    assert round(took_us(4_000)) == 1001 and held.is_pinned()
