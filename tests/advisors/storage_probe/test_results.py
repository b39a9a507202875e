"""Rates, factors, pay-offs and sentences, from made-up passes whose answer is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from loaderscope.advisors.storage_probe.decoders import Decoder
from loaderscope.advisors.storage_probe.formats import FORMATS
from loaderscope.advisors.storage_probe.layout import Layout
from loaderscope.advisors.storage_probe.probe_model import LayoutTrial
from loaderscope.advisors.storage_probe.results import trials
from loaderscope.advisors.storage_probe.source import Data
from loaderscope.advisors.storage_probe.timing import Timed
from loaderscope.advisors.storage_probe.verdict import sentences

MS = 1e-3
DATA = Data("/x", ".png", (), 1000, 10_000_000, (Path("/x"),), False)
PICTURES = Decoder("PIL", "pictures", len)
ROOMY, TIGHT = 10**12, 20_000_000


class Sized:
    """A layout as it is after converting a tenth of DATA: `bytes_` on disk."""

    def __init__(
        self, name: str, bytes_: int, convert_s: float = 0.0, reason: str | None = None
    ) -> None:
        self.name, self.bytes_, self.convert_s, self.reason = name, bytes_, convert_s, reason

    def made(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
        kind = next(each for each in FORMATS if each.name == self.name)
        layout = Layout(kind, folder)
        layout.count, layout.source_bytes, layout.convert_s = 100, 1_000_000, self.convert_s
        layout.reason = self.reason
        monkeypatch.setattr(layout, "disk_bytes", lambda: self.bytes_)
        return layout


FILES, LMDB, ARRAY = (
    Sized("files", 1_200_000),
    Sized("lmdb", 1_100_000, 0.5),
    Sized("array", 14_000_000, 2.0),
)
Passes = Sequence[float | None]


def result(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *lanes: tuple[Sized, Passes, Passes],
    decode: Sequence[float] = (),
    memory: int = ROOMY,
    missing: Sequence[Sized] = (),
) -> tuple[LayoutTrial, ...]:
    layouts = [each[0].made(tmp_path, monkeypatch) for each in lanes]
    for layout, (_, cold, warm) in zip(layouts, lanes, strict=True):
        layout.cold_s, layout.warm_s = list(cold), list(warm)
    others = [each.made(tmp_path, monkeypatch) for each in missing]
    return trials([*layouts, *others], Timed(layouts, list(decode), len(lanes[0][2])), DATA, memory)


def test_rates_and_factors_are_medians_of_paired_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A machine twice as slow in the last round: the rates differ, the ratios do not.
    files, lmdb = result(
        tmp_path, monkeypatch,
        (FILES, [4 * MS, 4 * MS, 8 * MS], [1 * MS, 1 * MS, 2 * MS]),
        (LMDB, [2 * MS, None, 4 * MS], [0.25 * MS, 0.5 * MS, 0.5 * MS]),
        decode=[3 * MS, 3 * MS, 6 * MS],
    )  # fmt: skip
    assert files.read_warm is not None
    assert (files.read_warm.median, files.read_warm.low, files.read_warm.high) == pytest.approx(
        (1000, 500, 1000)
    )
    assert files.total_warm is not None
    assert files.total_warm.median == pytest.approx(250)
    assert lmdb.read_cold is not None
    assert lmdb.read_cold.passes == 2
    assert lmdb.read_warm_factor is not None
    assert (
        lmdb.read_warm_factor.low,
        lmdb.read_warm_factor.mid,
        lmdb.read_warm_factor.high,
    ) == pytest.approx((2, 4, 4))
    assert lmdb.total_warm_factor is not None
    assert lmdb.total_warm_factor.mid == pytest.approx(4 / 3.25)
    assert (files.convert_s, files.read_warm_factor, files.pays_after_total) == (None, None, None)


def test_the_whole_is_ten_times_the_sample_and_pays_when_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lanes = (FILES, [2 * MS] * 3, [2 * MS] * 3), (LMDB, [1 * MS] * 3, [1 * MS] * 3)
    _, lmdb = result(tmp_path, monkeypatch, *lanes, decode=[6 * MS] * 3)
    assert (lmdb.whole_bytes, lmdb.whole_convert_s) == (11_000_000, 5.0)
    # An epoch of 1000 samples is one second shorter: 5 s are made good by the sixth.
    assert lmdb.pays_after_reading == lmdb.pays_after_total == 6


def test_a_gain_that_is_not_in_every_round_never_pays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lanes = (FILES, [], [2 * MS] * 3), (LMDB, [], [1 * MS, 1 * MS, 2.1 * MS])
    _, lmdb = result(tmp_path, monkeypatch, *((s, [None] * 3, warm) for s, _, warm in lanes))
    assert lmdb.pays_after_reading is None
    assert lmdb.read_cold is None


def test_a_fast_first_epoch_alone_does_not_pay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lanes = (FILES, [20 * MS] * 3, [1 * MS] * 3), (LMDB, [1 * MS] * 3, [2 * MS] * 3)
    _, lmdb = result(tmp_path, monkeypatch, *lanes)
    assert lmdb.read_cold_factor is not None
    assert lmdb.read_cold_factor.mid == pytest.approx(20)
    assert lmdb.pays_after_reading is None


def test_what_does_not_fit_in_memory_is_judged_by_cold_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lanes = (FILES, [4 * MS] * 3, [1 * MS] * 3), (ARRAY, [3 * MS] * 3, [0.1 * MS] * 3)
    files, array = result(tmp_path, monkeypatch, *lanes, decode=[1 * MS] * 3, memory=TIGHT)
    assert (files.fits_memory, array.fits_memory) == (True, False)
    # Files 1 ms warm and 1 ms decoding against 3 ms cold: slower, however fast it would be in
    # memory.
    assert array.total_steady_factor is not None
    assert array.total_steady_factor.mid == pytest.approx(2 / 3)
    assert array.total_warm_factor is not None
    assert array.total_warm_factor.mid == pytest.approx(20)
    text = list(sentences((files, array), PICTURES, 0.5, 0.8, TIGHT))
    assert "does not fit in memory (20.0 MB at most)" in text[-1]
    assert "140 MB" in text[-1]


def test_the_sentence_of_workload_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoding dominates: no packing is worth it, and the reader learns by how much before
    converting."""
    lanes = (FILES, [1 * MS] * 3, [0.04 * MS] * 3), (LMDB, [1 * MS] * 3, [0.02 * MS] * 3)
    found = result(
        tmp_path,
        monkeypatch,
        *lanes,
        (ARRAY, [1 * MS] * 3, [0.02 * MS] * 3),
        decode=[0.96 * MS] * 3,
    )
    text = list(sentences(found, PICTURES, 0.04, 0.51, ROOMY))
    assert "Reading from the page cache is 4.0 % of the time per sample" in text[0]
    assert "decoding 96 %: no layout that keeps pictures encoded gains more than ×1.04" in text[0]
    assert text[1].startswith(
        "No layout of the same bytes is clearly faster than the files: the closest is LMDB, ×1.02"
    )
    assert "×50" in text[2]
    assert "12 times the space" in text[2]
    # 20 s to convert; the first epoch saves 0.96 s, each later one 0.98 s.
    assert "pays after 21 epochs" in text[2]


def test_missing_layouts_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Sized("array", 0, reason="samples decode to different shapes")
    lanes = ((FILES, [None] * 2, [1 * MS] * 2),)
    files, array = result(tmp_path, monkeypatch, *lanes, decode=[1 * MS] * 2, missing=[gone])
    assert (array.reason, array.samples, array.bytes) == (
        "samples decode to different shapes",
        0,
        None,
    )
    text = list(sentences((files, array), PICTURES, 0.5, None, ROOMY))
    assert text[1:] == [
        "No other layout of the same bytes could be tried: see the reasons below.",
        "Decoded samples were not tried: samples decode to different shapes.",
    ]
    without = list(sentences((replace(files, read_warm=None),), PICTURES, None, None, ROOMY))
    assert without == ["Nothing could be timed: raise --seconds."]
