"""Where the device's work is drawn: beside the loop's, from lengths alone."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders import MS, loader_of, loop
from loaderscope.profiler.store.run.device_steps import DeviceSteps
from loaderscope.profiler.store.run.run import LoaderRun
from loaderscope.reports.words.timeline import Window
from loaderscope.tui.facts import lanes

LOAD, HOST, COPIED, STEP = 6, 1, 2, 5  # ms; the device's step has the copy in it


@pytest.fixture
def loader(tmp_path: Path) -> LoaderRun:
    times = {"h2d": COPIED, "compute_device": STEP, "stall": LOAD + HOST - STEP}
    columns = {f"{name}_ns": ms * MS for name, ms in times.items()}
    return loader_of(tmp_path, loop(8, LOAD, HOST, **columns), process={"device": "cuda:0"})


def slices(loader: LoaderRun, track: str) -> dict[str, Any]:
    (found,) = (each for each in Window(loader, 100).tracks() if each.name == track)
    return {each.stage: each for each in found.slices}


def test_the_device_stands_still_until_the_batch_it_waits_for(loader: LoaderRun) -> None:
    found, window = slices(loader, "device"), Window(loader, 100)
    copy, step, still = found["h2d"], found["compute_device"], found["stall"]
    assert (copy.start_ns == window.handed).all() and (copy.length_ns == COPIED * MS).all()
    assert (step.start_ns == window.handed + COPIED * MS).all()
    assert (step.length_ns == (STEP - COPIED) * MS).all()
    assert (still.start_ns + still.length_ns == window.handed).all()
    assert list(still.row) == list(range(8))
    # It had nothing to do since.
    assert (still.start_ns[1:] == (step.start_ns + step.length_ns)[:-1]).all()


def test_copies_on_a_stream_of_their_own_are_left_out(loader: LoaderRun) -> None:
    aside = replace(loader, device_steps=DeviceSteps(8, 1.0, ()))
    found = slices(aside, "device")
    assert (found["compute_device"].length_ns == STEP * MS).all()
    assert set(found) == {"compute_device", "stall"}


def test_the_dashboard_has_a_lane_of_it(loader: LoaderRun) -> None:
    (lane,) = (each for each in lanes(loader).lanes if each.name == "device")
    assert {"compute_device", "h2d", "stall"} == lane.spans.keys()
    assert lane.busy_share == pytest.approx(STEP / (LOAD + HOST), abs=0.05)
