"""Passes: every layout in every round, within the time, and nothing from a round that was broken
off."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from loaderscope.advisors.storage_probe import timing
from loaderscope.advisors.storage_probe.decoders import Decoder
from loaderscope.advisors.storage_probe.layout import Format, Layout, Read
from loaderscope.advisors.storage_probe.timing import MAX_ROUNDS, time_layouts

pytestmark = pytest.mark.quiet  # how often a pass fits into a time

COUNT = 50
SAMPLES = [bytes([n]) for n in range(COUNT)]


def memory(folder: Path, name: str, delay_s: float = 0.0, order: Any = "shuffled") -> Any:
    """A layout of COUNT samples, each read after so long, and the order in which they were read."""
    orders: list[int] = []

    @contextmanager
    def opened(layout: Layout) -> Iterator[Read]:
        def read(index: int) -> bytes:
            assert not gc.isenabled()
            orders.append(index)
            time.sleep(delay_s)
            return SAMPLES[index]

        yield read

    kind = Format(name, name, lambda layout, samples: None, opened, order=order)
    return Layout(kind, folder, count=COUNT), orders


@pytest.fixture(autouse=True)
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "make_cold", lambda paths: None)


def test_all_take_turns_and_the_times_are_theirs(tmp_path: Path) -> None:
    made = [memory(tmp_path, "memory"), memory(tmp_path, "slow", 0.002)]
    made += [memory(tmp_path, "tape", order="in sequence")]
    timed = time_layouts([layout for layout, _ in made], None, 0, 0, time.monotonic() + 8)
    assert 5 <= timed.rounds <= MAX_ROUNDS
    fast, slow, _ = timed.layouts
    assert all(len(each.cold_s) == len(each.warm_s) == timed.rounds for each in timed.layouts)
    assert all(t is not None and t >= 0.002 for t in slow.warm_s)
    assert all(t is not None and t < 0.002 for t in fast.warm_s)
    assert timed.decode_s == []
    cold_order, warm_order = made[0][1][-2 * COUNT : -COUNT], made[0][1][-COUNT:]
    assert cold_order == warm_order  # what is warm in the second pass is what the first has read
    assert cold_order != sorted(cold_order)
    assert made[2][1][-COUNT:] == list(range(COUNT))


def test_decoding_is_timed_apart(tmp_path: Path) -> None:
    decoder = Decoder("slow", "things", lambda data: time.sleep(0.001))
    timed = time_layouts([memory(tmp_path, "memory")[0]], decoder, COUNT, 0, time.monotonic() + 4)
    assert len(timed.decode_s) == timed.rounds
    assert all(t >= 0.001 for t in timed.decode_s)


def test_the_time_is_divided_so_that_the_slow_do_not_starve_the_rest(tmp_path: Path) -> None:
    layouts = [memory(tmp_path, "memory"), memory(tmp_path, "slower", 0.02)]
    begun = time.monotonic()
    timed = time_layouts([layout for layout, _ in layouts], None, 0, 0, begun + 6)
    assert time.monotonic() - begun < 9
    assert timed.rounds >= 3
    (_, fast), (_, slow) = layouts
    assert len(slow) < 2 * COUNT * timed.rounds <= len(fast)


@pytest.mark.parametrize("seconds", [-1.0, 0.01])
def test_without_time_there_are_no_figures(seconds: float, tmp_path: Path) -> None:
    begun = time.monotonic()
    layouts = [memory(tmp_path, "slow", 0.002)[0], memory(tmp_path, "memory")[0]]
    timed = time_layouts(layouts, None, 0, 0, begun + seconds)
    assert time.monotonic() - begun < 5
    assert timed.rounds == 0
    assert all(each.cold_s == each.warm_s == [] for each in timed.layouts)


def test_what_cannot_be_made_cold_has_no_cold_figures(tmp_path, monkeypatch):
    monkeypatch.setattr(timing, "make_cold", lambda paths: "it is a tmpfs")
    timed = time_layouts([memory(tmp_path, "memory")[0]], None, 0, 0, time.monotonic() + 2)
    assert timed.cold_reason == "it is a tmpfs"
    assert set(timed.layouts[0].cold_s) == {None}
    assert None not in timed.layouts[0].warm_s
