"""The stand-in itself: what it computes, when, and what it has of torch."""

import copy
from typing import Any

import pytest
import torch

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
    assert torch.accelerator.current_accelerator() == torch.device("standin")
    assert torch.get_device_module("standin") is device
    assert torch.accelerator.is_available() and not device.is_initialized()
    assert torch.ones(2).to("standin").device == torch.device("standin:0")
    assert device.is_initialized()
    standin.switch_off()
    assert not torch.accelerator.is_available() and not device.is_initialized()


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


@pytest.mark.parametrize(
    ("pin", "non_blocking", "took_ns", "counted"),
    [
        (True, True, 0, {}),
        (True, False, 4 * MS + 10_000, {"copy": 1}),
        (False, True, 8 * MS + 10_000, {}),  # at the slower rate, in the driver
    ],
)
def test_what_a_copy_makes_the_host_wait_for(device, clock, pin, non_blocking, took_ns, counted):
    batch = pinned(4 * MS) if pin else torch.ones(MS)
    began = clock.t_ns
    there = batch.to("standin", non_blocking=non_blocking)
    assert (clock.t_ns - began, device.engine.synchronised) == (took_ns, counted)
    (work,) = [w for w in device.engine.account if w.kind == "h2d"]
    assert work.end_ns - work.start_ns == (4 if pin else 8) * MS + 10_000
    assert (work.pinned, work.blocking, work.nbytes) == (pin, not non_blocking, 4 * MS)
    assert there.sum().item() == MS
    assert clock.t_ns >= work.end_ns


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


def test_events_are_stamped_by_the_device_and_waiting_is_counted(
    device: Any, clock: SetClock
) -> None:
    start, end = device.Event(enable_timing=True), device.Event(enable_timing=True)
    start.record()
    device.spin(3)
    end.record()
    assert start.query() and not end.query()
    with pytest.raises(RuntimeError, match="not ready"):
        start.elapsed_time(end)
    clock.t_ns += 3 * MS
    assert start.elapsed_time(end) == 3.0
    x = torch.ones(4).to("standin", non_blocking=True)
    assert not device.engine.synchronised
    x.sum().item()
    x.cpu()
    torch.equal(x, x)
    end.synchronize()
    device.synchronize()
    assert device.engine.synchronised == {"item": 2, "copy": 1, "event": 1, "device": 1}


def test_the_queue_is_bounded(standin_on: Any, clock: SetClock) -> None:
    device = standin_on(standin.Spec(queue=4), clock)
    began = clock.t_ns
    for _ in range(6):
        device.spin(1)
    assert clock.t_ns - began == 2 * MS  # the fifth waits for the first, the sixth for the second
