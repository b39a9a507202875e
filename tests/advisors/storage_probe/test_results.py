"""Rates, gains and sentences, from made-up passes; and passes that give time to each layout."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from loaderscope.advisors.storage_probe import run_probe
from loaderscope.advisors.storage_probe.layouts import FORMATS, Format, Layout
from loaderscope.advisors.storage_probe.probe_model import LayoutTrial
from loaderscope.advisors.storage_probe.run_probe import ROUNDS, time_layouts, trial_of
from loaderscope.advisors.storage_probe.verdict import sentences

MS = 1e-3
ROOMY, TIGHT = 10**12, 20_000_000


def layout_of(name: str, bytes_: float, cold: list[float], warm: list[float]) -> Layout:
    """A layout of so many bytes in all, whose samples took so long in each round."""
    kind = next(each for each in FORMATS if each.name == name)
    facts = {"count": 100, "whole_bytes": bytes_, "cold_s": cold, "warm_s": warm}
    return Layout(kind, Path("/x"), **facts)


def result(*made: Any, decode_s: float = 0.0, memory: int = ROOMY) -> tuple[LayoutTrial, ...]:
    layouts = [layout_of(*each) for each in made]
    return tuple(trial_of(each, layouts[0], decode_s, memory) for each in layouts)


def test_rates_are_medians_and_gains_are_paired_by_round() -> None:
    # A machine twice as slow in the last round: the rates differ, the ratios do not.
    files, lmdb = result(
        ("files", 12e6, [4 * MS, 4 * MS, 8 * MS], [1 * MS, 1 * MS, 2 * MS]),
        ("lmdb", 11e6, [2 * MS, 2 * MS, 4 * MS], [0.25 * MS, 0.5 * MS, 0.5 * MS]),
    )
    assert (files.cold, files.warm) == pytest.approx((250, 1000))
    assert lmdb.gain is not None
    assert (lmdb.gain.low, lmdb.gain.mid, lmdb.gain.high) == pytest.approx((2, 4, 4))
    assert files.gain is None
    slow = result(("files", 12e6, [2 * MS], [2 * MS]), decode_s=3 * MS)
    assert slow[0].warm == pytest.approx(200)  # decoding is included


def test_what_does_not_fit_in_memory_is_judged_by_cold_reading() -> None:
    lane = "files", 12e6, [4 * MS] * 3, [1 * MS] * 3
    how: Any = {"decode_s": 1 * MS, "memory": TIGHT}
    files, array = result(lane, ("array", 140e6, [3 * MS] * 3, [0.1 * MS] * 3), **how)
    assert (files.fits_memory, array.fits_memory) == (True, False)
    # Files 1 ms warm and 1 ms decoding against 3 ms cold: slower, however fast it would be in memory.
    assert array.gain is not None and array.gain.mid == pytest.approx(2 / 3)
    *_, said = sentences((files, array), 0.5, 0.8, TIGHT)
    assert "No layout of decoded samples is clearly faster" in said
    faster = result(lane, ("array", 140e6, [0.5 * MS] * 3, [0.1 * MS] * 3), **how)
    *_, said = sentences(faster, 0.5, 0.8, TIGHT)
    assert "does not fit in memory (20.0 MB at most)" in said


def test_the_sentence_of_workload_c() -> None:
    warm = {"files": 0.04, "lmdb": 0.02, "array": 0.02}
    lanes = [(name, 1e6, [1 * MS] * 3, [ms * MS] * 3) for name, ms in warm.items()]
    found = result(*lanes, decode_s=0.96 * MS)
    text = list(sentences(found, 0.04, 0.51, ROOMY))
    assert "Reading from the page cache is 4.0 % of the time per sample" in text[0]
    assert "decoding 96 %: no layout that keeps samples encoded gains more than ×1.04" in text[0]
    assert "of the same bytes is clearly faster than the files: the closest is LMDB" in text[1]
    assert "×50" in text[2] and "1.00 MB in all" in text[2]


def test_missing_layouts_are_told() -> None:
    files, array = (layout_of(name, 1e6, [], [1 * MS] * 2) for name in ("files", "array"))
    array.reason = "the samples cannot be stored: they have different shapes"
    found = [trial_of(each, files, 1 * MS, ROOMY) for each in (files, array)]
    assert (found[1].reason, found[1].samples, found[1].whole_bytes) == (array.reason, 0, None)
    assert list(sentences(found, 0.5, None, ROOMY))[1:] == [
        "No layout of the same bytes could be tried: see the reasons below.",
        "No layout of decoded samples could be tried: see the reasons below.",
    ]
    alone = list(sentences(found, None, None, ROOMY))
    assert alone[0].startswith("Files of this kind are not decoded here") and len(alone) == 2


# Passes.

COUNT = 50


def memory(name: str, delay_s: float = 0.0, order: Any = "shuffled") -> tuple[Layout, list[int]]:
    """A layout of COUNT samples, each read after so long, and the order in which they were read."""
    orders: list[int] = []

    def read(layout: Layout, wanted: Sequence[int]) -> Iterator[bytes]:
        for index in wanted:
            orders.append(index)
            time.sleep(delay_s)
            yield b"x"

    kind = Format(name, name, lambda layout, samples: None, read, order=order)
    return Layout(kind, Path("/x"), count=COUNT), orders


@pytest.mark.quiet  # how often a pass fits into a time
def test_all_take_turns_and_the_times_are_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_probe, "make_cold", lambda paths: None)
    made = [memory("memory"), memory("slow", 0.002), memory("tape", order="in sequence")]
    layouts = [layout for layout, _ in made]
    assert time_layouts(layouts, 0, time.monotonic() + 8) is None
    fast, slow, _ = layouts
    assert all(len(each.cold_s) == len(each.warm_s) == ROUNDS for each in layouts)
    assert all(t >= 0.002 for t in slow.warm_s) and all(t < 0.002 for t in fast.warm_s)
    cold_order, warm_order = made[0][1][-2 * COUNT : -COUNT], made[0][1][-COUNT:]
    assert cold_order == warm_order  # what is warm in the second pass is what the first has read
    assert cold_order != sorted(cold_order)
    assert made[2][1][-COUNT:] == list(range(COUNT))


@pytest.mark.quiet  # how often a pass fits into a time
def test_the_time_is_divided_so_that_the_slow_do_not_starve_the_rest(monkeypatch) -> None:
    monkeypatch.setattr(run_probe, "make_cold", lambda paths: None)
    (fast, all_), (slow, some) = memory("memory"), memory("slower", 0.02)
    begun = time.monotonic()
    time_layouts([fast, slow], 0, begun + 6)
    assert time.monotonic() - begun < 9
    assert len(slow.warm_s) >= 3
    assert len(some) < 2 * COUNT * len(slow.warm_s) <= len(all_)


def test_without_time_there_is_one_round_of_few_samples() -> None:
    layout, orders = memory("slow", 0.002)
    time_layouts([layout], 0, time.monotonic() - 1)
    assert (len(layout.warm_s), len(orders)) == (1, 2 * run_probe.MIN_PASS_SAMPLES)


def test_what_cannot_be_made_cold_has_no_cold_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    why = iter([None, None, "it is a tmpfs"])
    monkeypatch.setattr(run_probe, "make_cold", lambda paths: next(why))
    layouts = [memory("one")[0], memory("other")[0]]
    assert time_layouts(layouts, 0, time.monotonic() + 2) == "it is a tmpfs"
    assert [each.cold_s for each in layouts] == [[], []]
    assert all(len(each.warm_s) == ROUNDS for each in layouts)
