"""Which device is in use, with modules that were made up in the place of torch's."""

from types import SimpleNamespace

import pytest
import torch

from loaderscope.profiler.record.device.accelerator import Accelerator, in_use


@pytest.fixture
def current(monkeypatch):
    """Sets torch's accelerator, and the module that speaks for it."""

    def to(kind, **parts):
        monkeypatch.setattr(
            torch.accelerator, "current_accelerator", lambda: SimpleNamespace(type=kind)
        )
        monkeypatch.setattr(torch, kind, SimpleNamespace(**parts), raising=False)

    return to


def test_nothing_is_in_use_before_the_program_uses_it(current):
    def never():
        raise AssertionError("this would initialise it")

    current("npu", is_initialized=lambda: False, current_device=never, Event=never)
    assert in_use() is None
    current("npu", is_initialized=lambda: True, current_device=lambda: 3)
    device = in_use()
    assert isinstance(device, Accelerator)
    assert (device.kind, device.current_device(), device.name()) == ("npu", 3, "npu")


def test_a_backend_that_does_not_tell_whether_it_is_in_use(current):
    current("mps", Event=lambda enable_timing: None)
    assert in_use() == "torch.mps does not tell whether the program uses it"


def test_cuda_beside_another_accelerator_and_before_there_were_any(current, monkeypatch):
    current("npu", is_initialized=lambda: False)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    device = in_use()
    assert isinstance(device, Accelerator) and device.kind == "cuda"
    monkeypatch.delattr(torch, "accelerator")
    device = in_use()
    assert isinstance(device, Accelerator) and device.kind == "cuda" and device.lacks is None
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    assert in_use() is None


def test_what_a_module_lacks_is_taken_from_torch_or_said(monkeypatch):
    bare = Accelerator("npu", SimpleNamespace())
    assert bare.lacks is None  # torch.Event
    assert bare.capturing() is False
    made = []
    monkeypatch.setattr(torch, "Event", lambda *args, **kwargs: made.append((*args, kwargs)))
    bare.event()
    assert made == [("npu", {"enable_timing": True})]
    monkeypatch.delattr(torch, "Event")
    assert Accelerator("npu", SimpleNamespace()).lacks == "torch.npu has no events"
