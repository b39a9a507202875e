"""Which lines wait for the device, on what stream copies go; on the stand-in."""

import json

import pytest
import torch
from torch.utils.data import DataLoader

import loaderscope
from loaderscope.profiler.base.tolerant import fitted
from loaderscope.profiler.record.device import waits
from loaderscope.profiler.store.run.device_steps import DeviceSteps
from loaderscope.profiler.store.run.loader_facts import LoaderFacts
from torch_modes import seen_by_modes

CALLS = ("item", "cpu", "tolist", "__float__", "__int__", "__bool__")


@pytest.fixture
def device(standin_on):
    module = standin_on()
    module.init()
    return module


def seen(runs):
    (path,) = runs.rglob("loader0.json")
    return fitted(json.loads(path.read_text()), LoaderFacts).device_steps


def watched(batches=16):
    return loaderscope.watch(DataLoader([torch.ones(300)] * batches, batch_size=None))


def untouched():
    return not set(CALLS) & set(vars(torch.Tensor))


def test_lines_that_wait_are_found_and_counted(device, runs_dir):
    inside = 0
    for number, batch in enumerate(watched()):
        there = batch.to("standin")
        there.sum().item()
        batch.sum().item()  # of the CPU: nothing is waited for
        if number % 4 == 0:
            float(there[0])
        inside += not untouched()
    assert inside == waits.STEPS and untouched()
    found = seen(runs_dir)
    assert found is not None and found.aside_share == 0.0
    (each,) = found.every_step
    assert (each.call, each.line, each.a_step) == ("item", "there.sum().item()", 1.0)
    assert each.place.startswith("test_waits.py:") and each.mean_ns > 0
    (copied,) = found.copies
    assert (copied.line, copied.a_step) == ('there = batch.to("standin")', 1.0)
    assert copied.place.startswith("test_waits.py:")
    assert {wait.call: wait.a_step for wait in found.waits} == {"item": 1.0, "__float__": 0.25}


def test_what_is_read_is_the_same_and_so_are_errors(device):
    def values(x):
        try:
            x.item()
        except RuntimeError as error:
            read = x.tolist(), x.cpu().sum().item(), float(x[0]), int(x[1]), bool(x[0] > 1)
            return [*read, str(error)]

    found = [values(batch.to("standin")) for batch in watched()]
    assert found == [values(torch.ones(300).to("standin"))] * 16 and untouched()


def test_modes_of_the_program_see_what_they_see_bare(device):
    there = torch.ones(2).to("standin")

    def found():
        with seen_by_modes() as seen:
            there[0].item(), there.tolist(), float(there[1])
        return seen

    bare = found()
    assert bare and [found() for _ in watched()] == [bare] * 16


def test_copies_on_a_stream_of_their_own(device, runs_dir):
    side = device.Stream()
    for batch in watched():
        with device.stream(side):
            batch.to("standin", non_blocking=True)
    found = seen(runs_dir)
    assert found is not None and (found.aside_share, found.waits) == (1.0, ())


def test_a_loop_that_is_left_takes_the_wrappers_along(device, monkeypatch):
    monkeypatch.setattr(waits, "MOST_NS", 0)  # a time limit
    for number, batch in enumerate(loader := watched()):
        batch.to("standin")
        if number == waits.FIRST + 1:
            break
    assert not untouched()
    torch.ones(2).to("standin").tolist()
    assert untouched()
    monkeypatch.undo()
    for batch in loader:
        batch.to("standin").tolist()
    assert untouched()


@pytest.mark.parametrize("stored", [None, [], {}, {"steps": 0}, {"steps": "8", "waits": []}])
def test_rubbish_is_nothing(stored):
    assert fitted({"device_steps": stored}, LoaderFacts).device_steps is None
    some = {"steps": 8, "waits": [3, {"call": "item"}, None], "copies": [1, {"place": "a"}]}
    assert fitted({"device_steps": some}, LoaderFacts).device_steps == DeviceSteps(8, None, ())
