"""Passes: every layout in every round, within the time, and nothing from a round that was broken
off."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from loaderscope.advisors.storage_probe import timing
from loaderscope.advisors.storage_probe.convert import Converted, check
from loaderscope.advisors.storage_probe.decoders import Decoder
from loaderscope.advisors.storage_probe.layout import Layout, Read
from loaderscope.advisors.storage_probe.timing import MAX_ROUNDS, time_layouts

pytestmark = pytest.mark.quiet  # how often a pass fits into a time

COUNT = 50
SAMPLES = [bytes([n]) for n in range(COUNT)]
CONVERTED = Converted(COUNT, COUNT, COUNT, encoded_checks=[check(each) for each in SAMPLES])


class Memory(Layout):
    """Samples in memory, each read after `delay_s`; counts its passes."""

    name, label = "memory", "memory"
    delay_s = 0.0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, 100, COUNT)
        self.count = COUNT
        self.orders: list[list[int]] = []

    def store(self, sample: object) -> None:
        raise AssertionError

    def paths(self) -> list[Path]:
        return []

    @contextmanager
    def reading(self) -> Iterator[Read]:
        yield self._read

    def _read(self, order: Sequence[int]) -> Iterator[bytes]:
        self.orders.append(list(order))
        for index in order:
            assert not gc.isenabled() or len(self.orders) == 1
            time.sleep(self.delay_s)
            yield SAMPLES[index]


class Slow(Memory):
    name = "slow"
    delay_s = 0.002


class Tape(Memory):
    name, order = "tape", "in sequence"


@pytest.fixture(autouse=True)
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "make_cold", lambda paths: None)


def test_all_take_turns_and_the_times_are_theirs(tmp_path: Path) -> None:
    layouts = [Memory(tmp_path), Slow(tmp_path), Tape(tmp_path)]
    timed = time_layouts(layouts, CONVERTED, None, 0, time.monotonic() + 8)
    assert 5 <= timed.rounds <= MAX_ROUNDS
    fast, slow, tape = timed.lanes
    assert all(len(each.cold_s) == len(each.warm_s) == timed.rounds for each in timed.lanes)
    assert all(t is not None and t >= 0.002 for t in slow.warm_s)
    assert all(t is not None and t < 0.002 for t in fast.warm_s)
    assert timed.decode_s == []
    cold_order, warm_order = layouts[0].orders[-2:]
    assert cold_order == warm_order  # what is warm in the second pass is what the first has read
    assert cold_order != sorted(cold_order)
    assert tape.layout.orders[-1] == list(range(tape.samples))  # type: ignore[attr-defined]


def test_decoding_is_timed_apart(tmp_path: Path) -> None:
    decoder = Decoder("slow", "things", lambda data: time.sleep(0.001))
    timed = time_layouts([Memory(tmp_path)], CONVERTED, decoder, 0, time.monotonic() + 4)
    assert len(timed.decode_s) == timed.rounds
    assert all(t >= 0.001 for t in timed.decode_s)


def test_the_time_is_divided_so_that_the_slow_do_not_starve_the_rest(tmp_path: Path) -> None:
    class Slower(Memory):
        name, delay_s = "slower", 0.02

    begun = time.monotonic()
    timed = time_layouts([Memory(tmp_path), Slower(tmp_path)], CONVERTED, None, 0, begun + 6)
    assert time.monotonic() - begun < 9
    assert timed.rounds >= 3
    assert timed.lanes[1].samples < COUNT == timed.lanes[0].samples


@pytest.mark.parametrize("seconds", [-1.0, 0.05])
def test_without_time_there_are_no_figures(seconds: float, tmp_path: Path) -> None:
    begun = time.monotonic()
    timed = time_layouts([Slow(tmp_path), Memory(tmp_path)], CONVERTED, None, 0, begun + seconds)
    assert time.monotonic() - begun < 5
    assert timed.rounds == 0
    assert all(each.cold_s == each.warm_s == [] for each in timed.lanes)


def test_what_cannot_be_made_cold_has_no_cold_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "make_cold", lambda paths: "it is a tmpfs")
    timed = time_layouts([Memory(tmp_path)], CONVERTED, None, 0, time.monotonic() + 2)
    assert timed.cold_reason == "it is a tmpfs"
    assert set(timed.lanes[0].cold_s) == {None}
    assert None not in timed.lanes[0].warm_s


def test_a_layout_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    class Broken(Memory):
        name = "broken"

        def _read(self, order: Sequence[int]) -> Iterator[bytes]:
            raise OSError("no\x1b such thing")

    class Wrong(Memory):
        name = "wrong"

        def _read(self, order: Sequence[int]) -> Iterator[bytes]:
            return iter([b"?"] * len(order))

    broken, wrong = Broken(tmp_path), Wrong(tmp_path)
    timed = time_layouts(
        [Memory(tmp_path), broken, wrong], CONVERTED, None, 0, time.monotonic() + 2
    )
    assert [each.layout.name for each in timed.lanes] == ["memory"]
    assert broken.reason is not None
    assert broken.reason.startswith("reading it failed (OSError: no")
    assert broken.reason.isprintable()
    assert wrong.reason == "it gave other samples than were stored"
    assert gc.isenabled()
